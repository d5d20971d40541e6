// SPDX-License-Identifier: Apache-2.0
#include "core/store/grant_text.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "dlock/sequencer.hpp"
#include "dlock/spi/name.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::core {
namespace {

constexpr std::string_view kTextFamily = "dlock-grant";
constexpr std::string_view kTextVersion = "dlock-grant1";
constexpr unsigned kTextFormat = 1;
constexpr std::size_t kFields = 7;
constexpr std::size_t kCheckDigits = 16;
constexpr std::size_t kSecretDigits = 32;
constexpr std::size_t kOwnerDigits = 36;

[[noreturn]] void refuse_text(std::string why) {
  throw LockError(make_error_code(errc::invalid_argument),
                  {{}, {}, "not the text of an exported grant: " + std::move(why)});
}

std::string escape_field(std::string_view text) {
  return percent_escape(text, [](unsigned char c) { return c > 0x20 && c < 0x7F && c != ':'; });
}

/// Damage and slips of the hand, not forgery: that the store finds out.
std::string digest_of(std::string_view covered) {
  return sha256_hex(covered).substr(0, kCheckDigits);
}

bool is_hex(std::string_view text, std::size_t length, std::string_view also = {}) {
  return text.size() == length &&
         text.find_first_not_of(std::string("0123456789abcdef").append(also)) == text.npos;
}

std::array<std::string_view, kFields> split_fields(std::string_view text) {
  std::array<std::string_view, kFields> fields;
  for (std::size_t i = 0; i + 1 < kFields; ++i) {
    const auto end = text.find(':');
    if (end == text.npos) refuse_text("it is cut off");
    fields.at(i) = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  if (text.find(':') != text.npos) refuse_text("it has more fields than it should");
  fields.back() = text;
  return fields;
}

std::string_view without_line_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string GrantText::write() const {
  auto text = fmt::format("{}:{}:{}:{}:{}:{}", kTextVersion, grant.token, escape_field(grant.store),
                          escape_field(grant.name), owner_id, secret);
  const auto check = digest_of(text);
  return text.append(":").append(check);
}

// The content is reported only after it was checked: it may be anything, also another secret.
GrantText GrantText::read(std::string_view text) {
  text = without_line_end(text);
  if (text.size() > ExportedGrant::kLongestText) refuse_text("it is too long");
  auto newer = newer_format("it", text, kTextFamily, kTextFormat);
  if (!newer.empty()) refuse_text(std::move(newer));
  if (!text.starts_with(std::string(kTextVersion) + ":")) {
    refuse_text("it does not begin with 'dlock-grant1:'");
  }
  const auto fields = split_fields(text);
  const auto covered = text.substr(0, text.size() - fields.back().size() - 1);
  if (fields.back() != digest_of(covered)) refuse_text("it was altered, or is cut off");
  GrantText read;
  read.grant.store = percent_unescape(fields[2]);
  read.grant.name = percent_unescape(fields[3]);
  read.owner_id = fields[4];
  read.secret = fields[5];
  const auto* const end = fields[1].data() + fields[1].size();
  const auto [stop, error] = std::from_chars(fields[1].data(), end, read.grant.token);
  const bool is_token = error == std::errc() && stop == end && read.grant.token < kTokenEnd;
  const bool is_whole = is_token && is_hex(read.owner_id, kOwnerDigits, "-") &&
                        is_hex(read.secret, kSecretDigits) && name_error(read.grant.name).empty();
  if (!is_whole) refuse_text("a part of it is nothing that dlock writes");
  return read;
}

Adoption GrantText::adoption() const { return {owner_id, grant.token, proof_of(secret)}; }

// Not Env's random numbers, which others may guess: owners' ids are public.
std::string make_secret() {
  std::array<unsigned char, kSecretDigits / 2> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const auto more = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "no random numbers");
    }
    if (more > 0) got += static_cast<std::size_t>(more);
  }
  std::string digits;
  for (const auto byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::string proof_of(std::string_view secret) {
  return sha256_hex("dlock grant " + std::string(secret));
}

}  // namespace dlock::core

namespace dlock::inline v0 {

ExportedGrant ExportedGrant::read(std::string_view text) {
  return core::GrantText::read(text).grant;
}

}  // namespace dlock::inline v0
