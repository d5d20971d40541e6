// SPDX-License-Identifier: Apache-2.0
//
// A store's URL. A password in the wrong place is the most likely one of all: nothing that is said
// of a URL may show it.
#include "core/config/url.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

constexpr std::string_view kSecret = "hunter2";

/// Whether the word stands, once, where a password does: `scheme://anything:...word...@`.
bool has_secret(std::string_view url) {
  const auto scheme = url.find("://");
  const auto at = url.rfind('@');
  if (scheme == url.npos || scheme == 0 || at == url.npos || at < scheme) return false;
  const auto colon = url.find(':', scheme + 3);
  const auto secret = url.find(kSecret);
  return colon < secret && secret != url.npos && secret + kSecret.size() <= at &&
         url.find(kSecret, secret + 1) == url.npos;
}

void check_parsed(const core::ParsedUrl& url) {
  require(!url.scheme.empty(), "a URL has a scheme");
  for (const char c : url.scheme) require(c < 'A' || c > 'Z', "a scheme is lower case");
  for (const auto& host : url.hosts) {
    require(!host.name.empty(), "a host has a name");
    require(!host.port || *host.port != 0, "no port is 0");
  }
  require(url.path.empty() || url.path.front() == '/', "a path begins with a slash");
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  const auto text = as_text(data, size);
  const auto parsed = core::parse_url(text);
  require(parsed.error.empty() == parsed.value.has_value(), "a value or an error");
  if (parsed) check_parsed(*parsed.value);
  const auto shown = core::redacted_url(text);
  if (has_secret(text)) {
    require(shown.find(kSecret) == shown.npos, "a redacted URL shows no password");
    require(parsed.error.find(kSecret) == parsed.error.npos, "an error shows no password");
  }
  if (!parsed) return 0;
  const auto without = core::without_parameter(text, "lease");
  require(without.size() <= text.size(), "a parameter less makes it no longer");
  require(core::without_parameter(without, "lease") == without, "it is gone the first time");
  return 0;
}
