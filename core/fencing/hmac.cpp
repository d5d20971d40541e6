// SPDX-License-Identifier: Apache-2.0
#include "core/fencing/hmac.hpp"

#include "dlock/spi/name.hpp"

namespace dlock::core {
namespace {

constexpr std::size_t kBlock = 64;  // block size of SHA-256

int value_of(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

std::string sha256_bytes(std::string_view text) {
  const auto hex = sha256_hex(text);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(value_of(hex[i]) * 16 + value_of(hex[i + 1]));
  }
  return bytes;
}

std::string padded(std::string_view key, unsigned char with) {
  std::string block = key.size() > kBlock ? sha256_bytes(key) : std::string(key);
  block.resize(kBlock, '\0');
  for (auto& c : block) c = static_cast<char>(static_cast<unsigned char>(c) ^ with);
  return block;
}

}  // namespace

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  const auto inner = sha256_bytes(padded(key, 0x36).append(text));
  return sha256_hex(padded(key, 0x5C).append(inner));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differs = static_cast<unsigned char>(
        differs | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return differs == 0;
}

}  // namespace dlock::core
