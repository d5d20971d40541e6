// SPDX-License-Identifier: Apache-2.0
//
// A store's URL taken apart: `scheme://user:password@h1,h2:2181,[::1]:2182/path?key=value`. Syntax
// only; what the parts mean is for options.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/parsed.hpp"

namespace dlock::core {

struct ParsedUrl {
  struct Host {
    std::string name;  ///< decoded, without brackets
    std::optional<std::uint16_t> port;
  };
  std::string scheme;  ///< lower case
  std::vector<Host> hosts;
  std::string path;  ///< decoded, with its leading slash; empty if there was none
  std::optional<std::string> username;
  std::optional<std::string> password;
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order
};

Parsed<ParsedUrl> parse_url(std::string_view url);

/// For messages and logs: the password, and whatever else may be one, replaced by `***`. Works on
/// text that is not a URL, too.
std::string redacted_url(std::string_view url);

/// Returns the URL without user and password; empty if it is not a URL.
std::string without_credentials(std::string_view url);

/// The URL without the query parameter `key`; unchanged if it has none.
std::string without_parameter(std::string_view url, std::string_view key);

}  // namespace dlock::core
