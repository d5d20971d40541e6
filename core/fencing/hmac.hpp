// SPDX-License-Identifier: Apache-2.0
//
// HMAC-SHA256 (RFC 2104, FIPS 198-1), for texts that other programs pass back: Sequencer::sign().
#pragma once

#include <string>
#include <string_view>

namespace dlock::core {

/// 64 lower-case hexadecimal digits. `key`: any number of bytes.
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

/// Needs the same time whether the texts differ early or late; that time depends on their lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace dlock::core
