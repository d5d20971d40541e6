// SPDX-License-Identifier: Apache-2.0
//
// Lock name -> keys. Pure and injective.
//
// `orders/42` is the key `dlock:orders/42`: the template with the escaped name for `{name}`.
// Percent-escaped are `%`, space and control bytes; everything else, UTF-8 included, stays. Next to
// it is the token counter, `dlock:orders/42%t`, and a note of that name, `...%n`. A name too long
// for 250 bytes keeps its beginning and ends in `%s` and its SHA-256. `%` before a small letter is
// never an escape, so whatever the template, no name's key is another name's, nor a counter, nor
// the canary.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dlock::memcached {

inline constexpr std::size_t kLongestKey = 250;
inline constexpr std::string_view kNamePlace = "{name}";

class KeyMap {
 public:
  /// `key_template`: one for which key_template_error() is empty.
  explicit KeyMap(std::string_view key_template);

  std::string lock_key(std::string_view name) const { return around(body(name)); }
  std::string token_key(std::string_view name) const { return around(body(name) + "%t"); }
  std::string note_key(std::string_view name) const { return around(body(name) + "%n"); }
  /// Its loss shows that the server lost everything.
  std::string canary_key() const { return around("%canary"); }
  /// Returns the key of one run of the self-test. `id` is random.
  std::string self_test_key(std::string_view id) const {
    return around("%self-test-" + std::string(id));
  }
  /// Which list of servers the clients have: server_list.hpp.
  std::string list_key() const { return around("%list"); }

 private:
  std::string body(std::string_view name) const;
  std::string around(std::string_view middle) const;

  std::string before_;
  std::string after_;
};

/// Empty if the template is usable, else what is wrong with it.
std::string key_template_error(std::string_view key_template);

}  // namespace dlock::memcached
