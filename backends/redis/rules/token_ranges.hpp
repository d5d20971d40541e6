// SPDX-License-Identifier: Apache-2.0
//
// Tokens that a process owns before it acquires the lock (hi/lo allocation). A client that acquires
// the same lock repeatedly, without competitors, receives a range of tokens with one grant. The
// range has all tokens between the last one and the server's clock, and the grant raises the fence
// to its end. Then a SET NX with the next token acquires the lock without a script, while the fence
// is unchanged: a grant to another client would raise it. This class decides which locks have a
// range, and for how long. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "dlock/clock.hpp"
#include "dlock/detail/recycled.hpp"

namespace dlock::redis {

/// The longest time between a release and the answer with the range that follows it. It is also the
/// longest time between the request for a range and an answer that proves one of its tokens. These
/// tokens are below the server's clock. They rise only if the server has forgotten no grant since
/// the range. A server with a replica grants no range. A restart that a proxy hides takes longer
/// than this.
inline constexpr std::chrono::milliseconds kRangeLife{500};
/// A token is used only if this part of kRangeLife is left for the answer. An answer that arrives
/// too late wastes a round trip. Without this margin a client that acquires all the time would
/// waste one at the end of each range.
inline constexpr std::chrono::milliseconds kAnswerTime{100};
/// The pause after a range met a competitor: each such meeting costs a round trip.
inline constexpr std::chrono::seconds kRangeRest{1};

/// The ranges of one store. A call with another connection than before finds no range, because a
/// range is valid only for one run of the server. Loop only.
class TokenRanges {
 public:
  using Connection = std::shared_ptr<const void>;

  struct Token {
    std::uint64_t token;
    std::uint64_t fence;  ///< the value that the fence must have
    TimePoint until;      ///< an answer after this time is not valid
  };

  /// Returns the next token of this lock, if it has one above `min_token`. Each token is returned
  /// once.
  std::optional<Token> take(const Connection& on, std::string_view key, std::uint64_t min_token,
                            TimePoint now);
  /// Returns whether the next grant should have a range: this process released the lock lately, and
  /// no client waited.
  bool is_wanted(const Connection& on, std::string_view key, TimePoint now);
  struct Span {
    std::uint64_t token;  ///< the token of this grant
    std::uint64_t last;   ///< the value of the fence now
  };
  /// Stores the range of a grant that was requested at `asked`. Returns false if the answer arrived
  /// too late: then the grant is not valid either.
  bool put(const Connection& on, std::string_view key, Span span, TimePoint asked, TimePoint now);
  void released_alone(const Connection& on, std::string_view key, TimePoint now);
  /// Another client wants the lock, or has held it.
  void met_others(std::string_view key, TimePoint now);

 private:
  /// The range of one lock.
  struct Range {
    std::uint64_t next = 0;
    std::uint64_t last = 0;  ///< 0: there is none
    TimePoint until{};
    TimePoint alone_at{};
    TimePoint rests_until{};
  };
  /// Keyed by the key's hash. Two locks with the same hash replace each other's ranges; their
  /// fences reveal that.
  using Ranges = std::unordered_map<std::size_t, Range, std::hash<std::size_t>, std::equal_to<>,
                                    detail::Recycled<std::pair<const std::size_t, Range>>>;

  Range* find(std::string_view key);
  void use(const Connection& on);
  bool has_room(TimePoint now);

  Ranges ranges_;
  std::weak_ptr<const void> connection_;
  TimePoint swept_{};
};

}  // namespace dlock::redis
