// SPDX-License-Identifier: Apache-2.0
//
// The offset that is added to a czxid to make a token. So tokens are above those of another store
// that a lock was moved from. The offset is one persistent node per root. It is outside the locks'
// nodes, which the server deletes when they are empty. It only rises. A session reads it once and
// watches it. The notification of a raise arrives before that of a later release, so the next
// holder knows every earlier raise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/rules/token_offset_text.hpp"
#include "backends/zookeeper/wire/session.hpp"

namespace dlock::zookeeper {

/// Beside the library's codes.
inline constexpr int kNoTokenLeft = ZAPIERROR;

class TokenOffset {
 public:
  TokenOffset(std::shared_ptr<Session> session, std::string path);

  /// The connection was lost: notifications from before the next one arrive in no order.
  void doubt() noexcept { known_ = false; }
  /// The session is over, and with it the watch.
  void forget();

  /// Returns the offset. Needs no request while the watch exists. `rc`: ZOK, or why the offset is
  /// unknown.
  struct Value {
    int rc = ZCONNECTIONLOSS;
    std::uint64_t offset = 0;
  };
  asio::awaitable<Value> value(TimePoint deadline);
  /// As value(), when nothing has to be read for it.
  std::optional<Value> known() const {
    if (!known_ || heard_ != *events_) return {};
    return Value{ZOK, offsets_.back()};
  }
  /// Returns why the node cannot be read, after ZBADARGUMENTS.
  Failure unreadable() const;
  /// All values that it has had; the first is 0.
  const std::vector<std::uint64_t>& all() const noexcept { return offsets_; }

  /// Raises the offset to at least `least`. It raises further at once, so there is rarely more than
  /// one write a day.
  asio::awaitable<int> raise(std::uint64_t least, TimePoint deadline);

 private:
  asio::awaitable<int> read(TimePoint deadline);
  asio::awaitable<int> raise_once(std::uint64_t least, TimePoint deadline);
  int take(const Reply& reply);

  std::shared_ptr<Session> session_;
  const std::string path_;
  std::unique_ptr<Session::Watch> watch_;
  std::shared_ptr<std::uint64_t> events_ = std::make_shared<std::uint64_t>(0);
  std::uint64_t heard_ = 0;  ///< number of events before the last reading
  bool known_ = false;
  std::string newer_;  ///< The refusal of a newer format that was read last.
  std::vector<std::uint64_t> offsets_{0};
};

}  // namespace dlock::zookeeper
