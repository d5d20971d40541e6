// SPDX-License-Identifier: Apache-2.0
//
// HMAC-SHA256 (RFC 2104, FIPS 198-1), for texts that are passed on and come back:
// Sequencer::sign().
#pragma once

#include <string>
#include <string_view>

namespace dlock::core {

/// 64 lower-case hexadecimal digits. `key`: any number of bytes.
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

/// Takes as long for texts that differ early as for ones that differ late; tells their lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace dlock::core
