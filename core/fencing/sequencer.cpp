// SPDX-License-Identifier: Apache-2.0
#include "dlock/sequencer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/fencing/hmac.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::inline v0 {
namespace {

constexpr std::string_view kFamily = "dlock";
constexpr std::string_view kVersion = "dlock1";
constexpr unsigned kTextFormat = 1;
constexpr std::string_view kSigned = "dlock1s";
constexpr std::size_t kSignature = 64;
constexpr char kSeparator = ':';
constexpr char kEscape = '~';
constexpr std::size_t kLongestStore = 255;

/// Letters without a meaning in URLs, headers and shells; not the separator and the escape.
bool is_plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  return letter || digit || c == '-' || c == '_' || c == '.' || c == '/';
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
    } else {
      out += fmt::format("{}{:02X}", kEscape, static_cast<unsigned char>(c));
    }
  }
}

int value_of_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Empty, or what is wrong with the grant.
std::string grant_error(std::string_view name, std::uint64_t token, std::string_view store) {
  if (auto wrong = name_error(name); !wrong.empty()) return wrong;
  if (token == 0) return "the token is 0, which no store grants";
  if (token >= kTokenEnd) return fmt::format("the token {} is not below 2^53", token);
  if (store.empty()) return "the store's name is empty";
  if (store.size() > kLongestStore) {
    return fmt::format("the store's name has {} bytes; at most {} are allowed", store.size(),
                       kLongestStore);
  }
  return {};
}

/// Reads one text from left to right; the first thing that is wrong stays.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  const std::string& error() const noexcept { return error_; }

  void version() {
    const auto word = field("version");
    if (!error_.empty() || word == kVersion) return;
    if (word == kSigned) {
      fail("it is signed, and is read by parse_signed() with the key");
      return;
    }
    auto newer = newer_format("it", word, kFamily, kTextFormat);
    fail(newer.empty() ? "it does not begin with 'dlock1:'" : std::move(newer));
  }

  Mode mode() {
    const auto word = field("mode");
    if (word == to_string(Mode::shared)) return Mode::shared;
    if (error_.empty() && word != to_string(Mode::exclusive)) {
      fail("its mode is none that this program knows; write 'exclusive' or 'shared'");
    }
    return Mode::exclusive;
  }

  std::uint64_t token() {
    const auto digits = field("token");
    if (!error_.empty()) return 0;
    std::uint64_t token = 0;
    const auto [stop, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token);
    const bool whole = failed == std::errc() && stop == digits.data() + digits.size();
    const bool padded = digits.size() > 1 && digits.front() == '0';
    if (!whole || padded || token >= kTokenEnd) {
      fail("its token is not a decimal number below 2^53");
    }
    if (error_.empty() && token == 0) fail("its token is 0, which no store grants");
    return token;
  }

  std::string store() { return unescaped(field("store"), "store"); }

  std::string name() {
    if (!error_.empty()) return {};
    if (rest_.find(kSeparator) != rest_.npos) {
      fail("it has more than five fields; a ':' in a name is written ~3A");
      return {};
    }
    return unescaped(rest_, "name");
  }

 private:
  void fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }

  std::string_view field(std::string_view what) {
    if (!error_.empty()) return {};
    const auto end = rest_.find(kSeparator);
    if (end == rest_.npos) {
      fail(fmt::format("it ends in its {}; write dlock1:MODE:TOKEN:STORE:NAME", what));
      return {};
    }
    const auto text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string unescaped(std::string_view text, std::string_view what) {
    std::string plain;
    for (std::size_t i = 0; i < text.size() && error_.empty(); ++i) {
      if (is_plain(text[i])) {
        plain += text[i];
        continue;
      }
      if (text[i] != kEscape) {
        fail(fmt::format("its {} has the byte 0x{:02X}, which is written ~{:02X}", what,
                         static_cast<unsigned char>(text[i]), static_cast<unsigned char>(text[i])));
        break;
      }
      const int high = i + 2 < text.size() ? value_of_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? value_of_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        fail(fmt::format("its {} has a '~' without two capital hexadecimal digits", what));
        break;
      }
      const char c = static_cast<char>(high * 16 + low);
      // Otherwise one grant would have several texts, which a comparison would treat as different.
      if (is_plain(c)) fail(fmt::format("its {} escapes '{}', which needs none", what, c));
      plain += c;
      i += 2;
    }
    return plain;
  }

  std::string_view rest_;
  std::string error_;
};

LockError refused(std::string why) {
  return {make_error_code(errc::invalid_sequencer), {{}, {}, std::move(why)}};
}

/// Empty, or what is wrong with the signed text; `plain`: the same without its signature.
std::string signature_error(std::string_view text, std::string_view key, std::string& plain) {
  const auto begins = std::string(kSigned) + kSeparator;
  if (text.size() > Sequencer::kLongestText) return "it is too long";
  if (auto newer = newer_format("it", text, kFamily, kTextFormat); !newer.empty()) return newer;
  if (!text.starts_with(begins)) return "it is not signed: it does not begin with 'dlock1s:'";
  const auto end = text.rfind(kSeparator);
  const auto signature = text.substr(end + 1);
  if (signature.size() != kSignature || end < begins.size()) {
    return "it does not end in a signature of 64 digits";
  }
  const auto covered = text.substr(0, end);
  if (!core::equal_in_constant_time(signature, core::hmac_sha256_hex(key, covered))) {
    return "its signature is not of this key, or its text was altered";
  }
  plain = std::string(kVersion) + kSeparator;
  plain.append(covered.substr(begins.size()));
  return {};
}

void check_key(std::string_view key) {
  if (key.size() >= Sequencer::kShortestKey) return;
  throw LockError(make_error_code(errc::invalid_argument),
                  {{},
                   {},
                   fmt::format("the key has {} bytes; at least {} random ones are needed",
                               key.size(), Sequencer::kShortestKey)});
}

}  // namespace

const char* to_string(Mode value) noexcept {
  return value == Mode::shared ? "shared" : "exclusive";
}

const char* to_string(Standing value) noexcept {
  switch (value) {
    case Standing::current:
      return "current";
    case Standing::superseded:
      return "superseded";
    case Standing::not_held:
      return "not_held";
    case Standing::unknown:
      return "unknown";
  }
  return "unknown";
}

Sequencer::Sequencer(std::string name, Mode mode, std::uint64_t token, std::string store)
    : name_(std::move(name)), mode_(mode), token_(token), store_(std::move(store)) {
  if (auto wrong = grant_error(name_, token_, store_); !wrong.empty()) {
    throw refused(std::move(wrong));
  }
}

std::string Sequencer::to_string() const {
  std::string text = fmt::format("{}{}{}{}{}{}", kVersion, kSeparator, dlock::to_string(mode_),
                                 kSeparator, token_, kSeparator);
  append_escaped(text, store_);
  text += kSeparator;
  append_escaped(text, name_);
  return text;
}

std::optional<Sequencer> Sequencer::parse(std::string_view text, error_code& ec, std::string* why) {
  std::string wrong;
  if (text.empty()) wrong = "it is empty";
  if (text.size() > kLongestText) {
    wrong = fmt::format("it has {} bytes; at most {} are allowed", text.size(), kLongestText);
  }
  if (wrong.empty()) {
    Reader reader(text);
    reader.version();
    const auto mode = reader.mode();
    const auto token = reader.token();
    auto store = reader.store();
    auto name = reader.name();
    wrong = reader.error();
    if (wrong.empty()) wrong = grant_error(name, token, store);
    if (wrong.empty()) {
      ec = {};
      return Sequencer(std::move(name), mode, token, std::move(store));
    }
  }
  ec = make_error_code(errc::invalid_sequencer);
  if (why != nullptr) *why = std::move(wrong);
  return std::nullopt;
}

std::string Sequencer::sign(std::string_view key) const {
  check_key(key);
  auto text = to_string();
  text.replace(0, kVersion.size(), kSigned);
  const auto signature = core::hmac_sha256_hex(key, text);
  text += kSeparator;
  return text.append(signature);
}

std::optional<Sequencer> Sequencer::parse_signed(std::string_view text, std::string_view key,
                                                 error_code& ec, std::string* why) {
  check_key(key);
  std::string plain;
  auto wrong = signature_error(text, key, plain);
  if (wrong.empty()) return parse(plain, ec, why);
  ec = make_error_code(errc::invalid_sequencer);
  if (why != nullptr) *why = std::move(wrong);
  return std::nullopt;
}

Sequencer Sequencer::parse_signed(std::string_view text, std::string_view key) {
  error_code ec;
  std::string why;
  auto sequencer = parse_signed(text, key, ec, &why);
  if (!sequencer) throw refused(std::move(why));
  return std::move(*sequencer);
}

Sequencer Sequencer::parse(std::string_view text) {
  error_code ec;
  std::string why;
  auto sequencer = parse(text, ec, &why);
  if (!sequencer) throw refused(std::move(why));
  return std::move(*sequencer);
}

}  // namespace dlock::inline v0
