// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dlock::compare {

/// The parts of a store's URL that a client library asks for.
struct Address {
  std::string scheme;
  std::string hosts;  ///< as written: `h1:2181,h2:2181`
  std::string host;   ///< of the first
  std::uint16_t port = 0;
  std::string path;  ///< with its first slash
};

/// Throws std::invalid_argument.
Address parse_address(std::string_view url);

}  // namespace dlock::compare
