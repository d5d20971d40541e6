// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/names.hpp"

#include <fmt/format.h>

#include "backends/zookeeper/rules/contender.hpp"
#include "dlock/spi/name.hpp"

namespace dlock::zookeeper {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 1;
};

/// The input is UTF-8, checked by the core; a stray byte counts as itself.
CodePoint decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  std::size_t length = 1;
  char32_t value = lead;
  if (lead >= 0xF0) {
    length = 4;
    value = lead & 0x07U;
  } else if (lead >= 0xE0) {
    length = 3;
    value = lead & 0x0FU;
  } else if (lead >= 0xC0) {
    length = 2;
    value = lead & 0x1FU;
  }
  if (length > text.size()) return {lead, 1};
  for (std::size_t i = 1; i < length; ++i) {
    value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {value, length};
}

/// The same check as org.apache.zookeeper.common.PathUtils. It checks UTF-16 units, so characters
/// that need two of them are refused like surrogates.
bool server_refuses(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0xD800 && c <= 0xF8FF) || c >= 0xFFF0;
}

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  return out;
}

std::vector<std::string> prefixes(std::string_view path, std::size_t skip) {
  std::vector<std::string> nodes;
  for (auto at = skip; at < path.size();) {
    const auto next = path.find('/', at + 1);
    nodes.emplace_back(path.substr(0, next));
    at = next == std::string_view::npos ? path.size() : next;
  }
  return nodes;
}

std::string_view without_trailing_slash(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

NameMap::NameMap(std::string_view chroot, std::string_view root) {
  const auto prefix = without_trailing_slash(chroot);
  root_ = std::string(prefix).append(without_trailing_slash(root));
  root_nodes_ = prefixes(root_, prefix.size());
  if (root_.empty()) root_ = "/";
}

std::string NameMap::part(std::string_view text, bool first) const {
  const auto last_only = (first && root_ == "/" && text == "zookeeper") || parse_contender(text);
  std::string out;
  while (!text.empty()) {
    const auto c = decode(text);
    const auto bytes = text.substr(0, c.length);
    text.remove_prefix(c.length);
    const bool escape = bytes == "%" || server_refuses(c.value) || (last_only && text.empty());
    out += escape ? escaped(bytes) : std::string(bytes);
  }
  return out;
}

std::string NameMap::path(std::string_view lock) const {
  std::string out = root_ == "/" ? std::string() : root_;
  bool first = true;
  for (const auto text : split_name(lock)) {
    out.append("/").append(part(text, first));
    first = false;
  }
  return out;
}

std::string NameMap::below_root(std::string_view node) const {
  return std::string(root_ == "/" ? "" : root_).append("/").append(node);
}

// One node for the whole key, so that notes never have notes below them.
std::string NameMap::note(std::string_view key) const {
  auto out = notes() + "/";
  while (!key.empty()) {
    const auto c = decode(key);
    const auto bytes = key.substr(0, c.length);
    key.remove_prefix(c.length);
    const bool escape = bytes == "%" || bytes == "/" || server_refuses(c.value);
    out += escape ? escaped(bytes) : std::string(bytes);
  }
  return out;
}

std::vector<std::string> NameMap::nodes(std::string_view lock) const {
  return prefixes(path(lock), root_ == "/" ? 0 : root_.size());
}

std::optional<std::string> NameMap::name(std::string_view path_text) const {
  const auto base = root_ == "/" ? std::string_view() : std::string_view(root_);
  if (!path_text.starts_with(base) || path_text.size() < base.size() + 2 ||
      path_text[base.size()] != '/') {
    return {};
  }
  auto name = percent_unescape(path_text.substr(base.size() + 1));
  // Another program's node may have a name that only resembles an escaped name.
  if (!name_error(name).empty() || path(name) != path_text) return {};
  return name;
}

std::string path_error(std::string_view path) {
  if (path.empty()) return {};
  if (path.front() != '/') return "it must start with /";
  const auto body = without_trailing_slash(path);
  if (body.empty()) return {};
  for (const auto text : split_name(body.substr(1))) {
    if (text.empty() || text == "." || text == "..") return "a part is empty, . or ..";
    for (auto rest = text; !rest.empty();) {
      const auto c = decode(rest);
      if (server_refuses(c.value)) return "it has a character that ZooKeeper refuses";
      rest.remove_prefix(c.length);
    }
  }
  if (body == "/zookeeper" || body.starts_with("/zookeeper/")) {
    return "/zookeeper is the server's own";
  }
  return {};
}

}  // namespace dlock::zookeeper
