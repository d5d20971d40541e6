// SPDX-License-Identifier: Apache-2.0
//
// Tokens that are ours before we have the lock. Who takes the same lock again and again, and nobody
// else wants it, is given many of them with one grant (hi/lo allocation): all those between the
// last token and the server's clock, to which the fence is raised. From then on a SET NX with the
// next one takes the lock, no script, for as long as the fence still says the same: nobody else is
// granted the lock without raising it. Which locks have such a range, and for how long, is decided
// here. Pure.
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

/// The longest time between a release and the answer with the range that follows it, and between
/// the request for a range and an answer that proves one of its tokens. These tokens are below the
/// server's clock. They rise only if the server has forgotten no grant since the range. A server
/// with a replica grants no range. A restart that a proxy hides takes longer than this.
inline constexpr std::chrono::milliseconds kRangeLife{500};
/// So much of it is left for the answer when a token is taken: one that comes too late is a round
/// trip for nothing, and who takes a lock all the time would have one at the end of each range.
inline constexpr std::chrono::milliseconds kAnswerTime{100};
/// After somebody else was met: each time costs a round trip.
inline constexpr std::chrono::seconds kRangeRest{1};

/// A store's. Everything that is said with another connection than the last time finds nothing: a
/// range is as good as its server's memory. Loop only.
class TokenRanges {
 public:
  using Connection = std::shared_ptr<const void>;

  struct Token {
    std::uint64_t token;
    std::uint64_t fence;  ///< what the fence must say
    TimePoint until;      ///< no answer is believed later
  };

  /// The next token for this lock, if there is one, and it is above `min_token`. Once.
  std::optional<Token> take(const Connection& on, std::string_view key, std::uint64_t min_token,
                            TimePoint now);
  /// The next grant is to bring a range: we have given this lock back lately, and nobody waited.
  bool is_wanted(const Connection& on, std::string_view key, TimePoint now);
  struct Span {
    std::uint64_t token;  ///< of this grant
    std::uint64_t last;   ///< what the fence says now
  };
  /// What the grant that was asked for then has brought. False: too late to be believed, the grant
  /// as well.
  bool put(const Connection& on, std::string_view key, Span span, TimePoint asked, TimePoint now);
  void released_alone(const Connection& on, std::string_view key, TimePoint now);
  /// Somebody else wants it, or has had it.
  void met_others(std::string_view key, TimePoint now);

 private:
  /// Of a lock.
  struct Range {
    std::uint64_t next = 0;
    std::uint64_t last = 0;  ///< 0: there is none
    TimePoint until{};
    TimePoint alone_at{};
    TimePoint rests_until{};
  };
  /// By the key's hash. Two locks with the same take each other's ranges, which their fences show.
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
