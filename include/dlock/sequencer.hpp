// SPDX-License-Identifier: Apache-2.0
//
// Sequencer: a grant of a lock in a form that can be passed on, so that the service that does the
// work can refuse it when the grant is no longer the newest one. The holder sends it with each
// request; the service checks it, by the store (LockManager::check), by the highest it has seen
// (<dlock/sequencer_check.hpp>), in its database (docs/fencing.md), or in a file
// (<dlock/fenced_register.hpp>).
//
//   request.set("X-Lock", held.sequencer()->to_string());     // dlock1:exclusive:17:zk:orders/42
//   const auto sequencer = dlock::Sequencer::parse(request["X-Lock"]);
//
// A client that can write the text can write any token into it. The text protects against holders
// that are late, not against ones that lie. Where strangers can reach the service, sign() it with a
// key that only holders and services have:
//
//   request.set("X-Lock", held.sequencer()->sign(key));
//   const auto sequencer = dlock::Sequencer::parse_signed(request["X-Lock"], key);
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/error.hpp"
#include "dlock/mode.hpp"

namespace dlock::inline v0 {

/// Fencing tokens are below 2^53, which JSON and Lua still count exactly.
inline constexpr std::uint64_t kTokenEnd = std::uint64_t{1} << 53;

/// One grant: lock name, mode, token and store. A value; distinct objects are independent, and one
/// may be read from any thread.
class Sequencer {
 public:
  /// The longest text that parse() accepts; to_string() is always shorter.
  static constexpr std::size_t kLongestText = 4096;
  /// Shortest key of sign() and parse_signed(), in bytes.
  static constexpr std::size_t kShortestKey = 16;

  /// `store` is its name in the configuration, 1 to 255 bytes. Throws LockError{invalid_sequencer}
  /// if `name` is not a lock name, or the token is 0 or not below 2^53. Throws it also if `store`
  /// is empty or too long.
  Sequencer(std::string name, Mode mode, std::uint64_t token, std::string store);

  const std::string& name() const noexcept { return name_; }
  Mode mode() const noexcept { return mode_; }
  std::uint64_t token() const noexcept { return token_; }
  const std::string& store() const noexcept { return store_; }

  /// Returns `dlock1:exclusive:17:zk:orders/42`: version, mode (or `shared`), token, store, name.
  /// It has only letters, digits and `-_./:~`, so that HTTP headers, shells and URL parameters need
  /// no quoting. Other bytes of the names are `~` and two capital hexadecimal digits. `%` is not
  /// used, because software that handles URLs would decode it.
  std::string to_string() const;

  /// Reads a text that to_string() wrote, and no other: one grant has one text. Accepts any bytes.
  /// Throws LockError{invalid_sequencer} with the reason.
  static Sequencer parse(std::string_view text);
  /// Same; on error returns an empty optional, sets `ec`, and writes the reason to `why` if not
  /// null.
  static std::optional<Sequencer> parse(std::string_view text, error_code& ec,
                                        std::string* why = nullptr);

  /// Returns the text with the HMAC-SHA256 of `key` at its end:
  /// `dlock1s:exclusive:17:zk:orders/42:` and 64 digits, with the same characters. The key: at
  /// least kShortestKey random bytes, the same for all clients that sign and read. A signature
  /// proves that a client with the key wrote this grant. It does not expire: a late request is
  /// refused by its token. Throws LockError{invalid_argument} if the key is shorter.
  std::string sign(std::string_view key) const;
  /// Reads a text that sign() wrote with the same key, and no other. Accepts any bytes. Throws
  /// LockError{invalid_sequencer}, and {invalid_argument} as sign().
  static Sequencer parse_signed(std::string_view text, std::string_view key);
  /// Same; on a refused text returns an empty optional, sets `ec`, and writes the reason to `why`.
  static std::optional<Sequencer> parse_signed(std::string_view text, std::string_view key,
                                               error_code& ec, std::string* why = nullptr);

  friend bool operator==(const Sequencer&, const Sequencer&) = default;

 private:
  std::string name_;
  Mode mode_;
  std::uint64_t token_;
  std::string store_;
};

/// The state of a grant, as its store reports it.
enum class Standing {
  current,     ///< it is the present grant of its lock, or one of those of mode shared
  superseded,  ///< the lock is held by another grant
  not_held,    ///< no client holds the lock
  unknown,     ///< the store did not say
};

const char* to_string(Standing value) noexcept;

/// LockManager::check()'s answer. It is a picture of the past by the time it is read: the grant may
/// end before whatever is done next.
struct StandingReport {
  Standing standing = Standing::unknown;
  std::optional<std::uint64_t> present_token;  ///< the (first) holder's, if it has one
  error_code error;                            ///< why it is unknown; else clear
  std::string message;                         ///< the store's words, or what to check
};

}  // namespace dlock::inline v0
