// SPDX-License-Identifier: Apache-2.0
//
// The file of a fenced register: as it comes, with a digest that fits it, and written by us.
#include "core/fencing/fenced_file.hpp"

#include "dlock/sequencer.hpp"
#include "dlock/spi/name.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

void check_file(std::string_view file) {
  core::FencedContent content;
  const auto wrong = core::decode_fenced(file, content);
  if (!wrong.empty()) return;
  require(content.token < kTokenEnd, "a token is below 2^53");
  require(core::encode_fenced(content) == file, "one content has one file");
}

/// Else no input would get past the digest.
std::string with_digest(std::string_view text) {
  return "dlock-register=1 sha256=" + sha256_hex(text) + " " + std::string(text);
}

void check_content(std::string_view text) {
  core::FencedContent content;
  content.lock = std::string(take_until(text, '\n')).substr(0, 512);
  content.token = text.size() * 1'000'003;
  content.bytes = std::string(text);
  auto file = core::encode_fenced(content);
  core::FencedContent back;
  require(core::decode_fenced(file, back).empty(), "what is written can be read");
  require(back.lock == content.lock && back.token == content.token && back.bytes == content.bytes,
          "it is read back as it was written");
  file[text.size() * 31 % file.size()] ^= 1;
  require(!core::decode_fenced(file, back).empty(), "one wrong bit is noticed");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = dlock::fuzz::as_text(data, size);
  dlock::fuzz::check_file(text);
  dlock::fuzz::check_file(dlock::fuzz::with_digest(text));
  dlock::fuzz::check_content(text);
  return 0;
}
