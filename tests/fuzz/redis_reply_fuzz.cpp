// SPDX-License-Identifier: Apache-2.0
//
// What a Redis server sends. Input: the first byte is the size of the pieces in which it comes.
#include "backends/redis/wire/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using redis::Reply;
using redis::ReplyReader;

// Small, so that inputs reach them.
constexpr ReplyReader::Limits kLimits{2048, 64};

std::size_t count(const Reply& reply) {
  std::size_t elements = reply.items.size();
  for (const auto& item : reply.items) elements += count(item);
  return elements;
}

bool same(const Reply& a, const Reply& b) {
  if (a.kind != b.kind || a.integer != b.integer || a.text != b.text) return false;
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  return true;
}

void take_all(ReplyReader& reader, std::vector<Reply>& into) {
  while (auto reply = reader.next()) {
    require(count(*reply) <= kLimits.elements, "no reply has more elements than allowed");
    into.push_back(std::move(*reply));
  }
}

std::vector<Reply> read(std::string_view bytes, std::size_t piece, bool& failed) {
  ReplyReader reader(kLimits);
  std::vector<Reply> replies;
  while (!bytes.empty() && reader.error().empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    take_all(reader, replies);
  }
  failed = !reader.error().empty();
  reader.feed("+OK\r\n");
  if (failed) require(!reader.next(), "after a failure nothing more is given");
  return replies;
}

void check_command(std::string_view text) {
  const auto words = lines_of(text);
  if (words.empty() || words.size() > kLimits.elements || text.size() > 1024) return;
  std::string bytes;
  redis::append_command(words, bytes);
  ReplyReader reader(kLimits);
  reader.feed(bytes);
  const auto command = reader.next();
  require(command && command->items.size() == words.size(), "a command is an array of its words");
  for (std::size_t i = 0; i < words.size(); ++i) {
    require(command->items[i].text == words[i], "no word can break out of its place");
  }
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock::fuzz;
  if (size == 0) return 0;
  const auto bytes = as_text(data + 1, size - 1);
  bool failed = false;
  bool failed_in_pieces = false;
  const auto whole = read(bytes, bytes.size() + 1, failed);
  const auto pieces = read(bytes, 1 + data[0] % 16U, failed_in_pieces);
  for (std::size_t i = 0; i < std::min(whole.size(), pieces.size()); ++i) {
    require(same(whole[i], pieces[i]), "replies do not depend on how they come");
  }
  if (!failed && !failed_in_pieces) {
    require(whole.size() == pieces.size(), "no reply is lost or made up");
  }
  check_command(bytes);
  return 0;
}
