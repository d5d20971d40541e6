// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/names.hpp"

#include <algorithm>

#include "dlock/spi/name.hpp"

namespace dlock::memcached {
namespace {

constexpr std::size_t kSuffix = 2;  ///< `%t`, `%n`
constexpr std::size_t kDigest = 2 + 64;
constexpr std::size_t kLongestTemplate = 100;

bool plain(unsigned char byte) { return byte > 0x20 && byte != 0x7F; }

}  // namespace

KeyMap::KeyMap(std::string_view key_template)
    : before_(key_template.substr(0, key_template.find(kNamePlace))),
      after_(key_template.substr(before_.size() + kNamePlace.size())) {}

std::string KeyMap::body(std::string_view name) const {
  auto escaped = percent_escape(name, plain);
  const auto room = kLongestKey - before_.size() - after_.size() - kSuffix;
  if (escaped.size() <= room) return escaped;
  escaped.resize(room - kDigest);
  return escaped + "%s" + sha256_hex(name);
}

std::string KeyMap::around(std::string_view middle) const {
  return std::string(before_).append(middle).append(after_);
}

std::string key_template_error(std::string_view key_template) {
  const auto place = key_template.find(kNamePlace);
  if (place == std::string_view::npos ||
      key_template.find(kNamePlace, place + 1) != std::string_view::npos) {
    return "it must contain {name} once";
  }
  if (key_template.size() > kLongestTemplate) return "it is longer than 100 bytes";
  const bool spelled = std::all_of(key_template.begin(), key_template.end(),
                                   [](char c) { return plain(static_cast<unsigned char>(c)); });
  return spelled ? "" : "a key has no spaces and control bytes";
}

}  // namespace dlock::memcached
