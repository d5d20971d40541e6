// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/names.hpp"

#include <algorithm>

#include "dlock/spi/name.hpp"

namespace dlock::redis {
namespace {

std::string escaped(std::string_view name) {
  if (name.find_first_of("{}%") == std::string_view::npos) return std::string(name);
  return percent_escape(name, [](unsigned char c) { return c != '{' && c != '}'; });
}

std::string glob_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string template_error(std::string_view text) {
  const auto place = text.find(kNamePlace);
  if (place == std::string_view::npos ||
      text.find(kNamePlace, place + 1) != std::string_view::npos) {
    return "it has not exactly one {name} for the lock's name; write for example dlock:{{name}}";
  }
  if (text.find('%') != std::string_view::npos) return "it has a %, reserved for escapes";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "it has a control byte";
  }
  std::string rest(text);
  rest.replace(place, kNamePlace.size(), "x");
  const auto opening = std::count(rest.begin(), rest.end(), '{');
  const auto closing = std::count(rest.begin(), rest.end(), '}');
  if (opening == 0 && closing == 0) return {};
  const auto open = rest.find('{');
  const auto close = rest.find('}');
  if (opening != 1 || closing != 1 || close < open + 2) {
    return "its braces do not form a hash tag; write one { before one } with something in between";
  }
  return {};
}

KeyMap::KeyMap(std::string_view key_template) {
  const auto place = key_template.find(kNamePlace);
  before_ = key_template.substr(0, place);
  after_ = key_template.substr(place + kNamePlace.size());
  tagged_ = (before_ + after_).find('{') != std::string::npos;
}

std::string KeyMap::key(std::string_view name) const { return std::string(base(name).lock()); }

KeyBase KeyMap::base(std::string_view name) const { return around(escaped(name)); }

KeyBase KeyMap::self_test_base(std::string_view id) const {
  return around("%self-test-" + std::string(id));
}

// Without a tag in the template the whole key is the tag of the others: the same slot.
KeyBase KeyMap::around(std::string_view middle) const {
  std::string text;
  text.reserve(before_.size() + middle.size() + after_.size() + 2);
  if (!tagged_) text += '{';
  text.append(before_).append(middle).append(after_);
  if (!tagged_) text += '}';
  return {std::move(text), tagged_};
}

LockKeys KeyMap::keys(std::string_view name) const {
  const auto all = base(name);
  const auto beside = [&](std::string_view suffix) { return all.text + std::string(suffix); };
  return {std::string(all.lock()), beside(kFenceKey), beside(kQueueKey), beside(kAliveKey),
          beside(kNextKey),        beside(kNoteKey),  beside(kBrokenKey)};
}

std::optional<std::string> KeyMap::name(std::string_view key_text) const {
  if (key_text.size() <= before_.size() + after_.size()) return {};
  if (!key_text.starts_with(before_) || !key_text.ends_with(after_)) return {};
  auto middle = key_text.substr(before_.size());
  middle.remove_suffix(after_.size());
  auto name = percent_unescape(middle);
  if (!name_error(name).empty() || key(name) != key_text) return {};
  return name;
}

std::optional<std::string> KeyMap::name_beside(std::string_view key,
                                               std::string_view suffix) const {
  if (!key.ends_with(suffix)) return {};
  key.remove_suffix(suffix.size());
  if (tagged_) return name(key);
  if (!key.starts_with('{') || !key.ends_with('}')) return {};
  return name(key.substr(1, key.size() - 2));
}

std::string KeyMap::pattern_beside(std::string_view prefix, std::string_view suffix) const {
  auto keys = pattern(prefix);
  if (!tagged_) keys = "{" + keys + "}";
  return keys.append(suffix);
}

std::string KeyMap::pattern(std::string_view prefix) const {
  return glob_escaped(before_) + glob_escaped(escaped(prefix)) + "*" + glob_escaped(after_);
}

}  // namespace dlock::redis
