// SPDX-License-Identifier: Apache-2.0
//
// What a Memcached server sends. Input: the first byte is the size of the pieces in which it comes.
#include <algorithm>
#include <cstring>

#include "backends/memcached/wire/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using memcached::Piece;
using memcached::ReplyReader;

void feed(ReplyReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = reader.room();
    require(!room.empty(), "there is always room");
    const auto size = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), size);
    reader.received(size);
    bytes.remove_prefix(size);
  }
}

void check(const Piece& piece) {
  require(piece.line.size() <= ReplyReader::kLongestLine, "no line is longer than allowed");
  require(piece.data.size() <= ReplyReader::kLongestData, "no data is longer than allowed");
  require(piece.line.find('\n') == piece.line.npos, "a line is one line");
  if (const auto item = memcached::read_item_line(piece.line)) {
    require(item->key.find(' ') == item->key.npos, "a key is one word");
  }
  if (const auto meta = memcached::read_meta_line(piece.line)) {
    require(meta->code.size() == 2, "a code has two letters");
  }
  memcached::read_number(piece.line);
}

std::vector<std::string> read(std::string_view bytes, std::size_t size, bool with_data,
                              bool& failed) {
  ReplyReader reader;
  std::vector<std::string> pieces;
  while (!bytes.empty()) {
    feed(reader, bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
    while (const auto piece = reader.next(with_data)) {
      check(*piece);
      require(with_data || !piece->has_data, "no data where none is expected");
      pieces.push_back(std::string(piece->line) + '\n' + std::string(piece->data));
    }
  }
  failed = !reader.error().empty();
  feed(reader, "END\r\n");
  if (failed) require(!reader.next(with_data), "after a failure nothing more is given");
  return pieces;
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock::fuzz;
  if (size == 0) return 0;
  const auto bytes = as_text(data + 1, size - 1);
  for (const bool with_data : {false, true}) {
    bool failed = false;
    bool failed_in_pieces = false;
    const auto whole = read(bytes, bytes.size() + 1, with_data, failed);
    const auto pieces = read(bytes, 1 + data[0] % 16U, with_data, failed_in_pieces);
    require(whole == pieces, "pieces do not depend on how they come");
    require(failed == failed_in_pieces, "nor do errors");
  }
  return 0;
}
