// SPDX-License-Identifier: Apache-2.0
//
// Sequencers, as services get them from anybody. Input: the text; and once more as store and name.
#include "dlock/sequencer.hpp"

#include "dlock/error.hpp"
#include "dlock/spi/name.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

void check_text(std::string_view text) {
  error_code ec;
  std::string why;
  const auto parsed = Sequencer::parse(text, ec, &why);
  require(parsed.has_value() == !ec, "a value or an error");
  if (!parsed) return require(!why.empty(), "an error says why");
  require(parsed->to_string() == text, "one grant has one text");
  require(text.size() <= Sequencer::kLongestText, "no text is too long");
  require(parsed->token() < kTokenEnd, "a token is below 2^53");
  require(name_error(parsed->name()).empty(), "a name is one");
  require(!parsed->store().empty() && parsed->store().size() <= 255, "a store's name is one");
}

void check_grant(std::string_view text) {
  std::string store(take_until(text, '\n'));
  const std::uint64_t token = (static_cast<std::uint64_t>(size_t{1} << (text.size() % 60U))) + 1;
  try {
    const Sequencer made{std::string(text), Mode::exclusive, token, std::move(store)};
    const auto written = made.to_string();
    require(written.size() <= Sequencer::kLongestText, "what is written can be read");
    for (const char c : written) require(c > 0x20 && c < 0x7F, "it needs no quoting");
    require(Sequencer::parse(written) == made, "it is read back as it was written");
  } catch (const LockError& error) {
    require(error.code() == errc::invalid_sequencer, "a bad grant has one code");
  }
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = dlock::fuzz::as_text(data, size);
  dlock::fuzz::check_text(text);
  dlock::fuzz::check_grant(text);
  return 0;
}
