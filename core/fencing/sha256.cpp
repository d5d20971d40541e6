// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), for keys that are too long for their store, and below hmac.hpp. Our own
// because OpenSSL cannot be used after its cleanup at the end of a process (3.0: EVP_Digest() ends
// by SIGSEGV), and a manager that is a static object releases its locks after it.
#include <array>
#include <cstdint>

#include "dlock/spi/name.hpp"

namespace dlock::inline v0 {

namespace {

constexpr std::size_t kBlock = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

constexpr std::uint32_t rotate(std::uint32_t x, unsigned bits) {
  return (x >> bits) | (x << (32 - bits));
}

void add_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      w[i] = (w[i] << 8U) | static_cast<unsigned char>(block[4 * i + j]);
    }
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3U);
    const std::uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10U);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t big_e = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t first = h + big_e + choice + kRound[i] + w[i];
    const std::uint32_t big_a = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + big_a + majority;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (; text.size() >= kBlock; text.remove_prefix(kBlock)) {
    add_block(state, text.substr(0, kBlock));
  }
  // A one bit, zeros up to the end of a block, and the length in its last eight bytes.
  std::string last(text);
  last += '\x80';
  while (last.size() % kBlock != kBlock - 8) last += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) {
    last += static_cast<char>(static_cast<unsigned char>(bits >> static_cast<unsigned>(shift)));
  }
  for (std::size_t at = 0; at < last.size(); at += kBlock) {
    add_block(state, std::string_view(last).substr(at, kBlock));
  }

  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint32_t word : state) {
    for (unsigned shift = 32; shift > 0; shift -= 4) hex += kDigits[(word >> (shift - 4)) & 0xFU];
  }
  return hex;
}

}  // namespace dlock::inline v0
