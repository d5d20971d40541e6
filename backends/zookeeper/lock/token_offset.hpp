// SPDX-License-Identifier: Apache-2.0
//
// What is added to a czxid to make a token: above the tokens of another store that a lock came
// from. One persistent node per root, outside the locks' nodes, which the server collects; it only
// ever rises. A session reads it once and watches it: the news of a raise comes before that of the
// release after it, so who learns that it is his turn has heard of every raise before.
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

  /// The connection was lost: what was told meanwhile comes in no order.
  void doubt() noexcept { known_ = false; }
  /// The session is over, and its watch.
  void forget();

  /// No request while the watch stands. `rc`: ZOK, or why it cannot be told.
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
  /// All that it has ever been; 0 first.
  const std::vector<std::uint64_t>& all() const noexcept { return offsets_; }

  /// At least that; rarely more than one write a day, since it goes further at once.
  asio::awaitable<int> raise(std::uint64_t least, TimePoint deadline);

 private:
  asio::awaitable<int> read(TimePoint deadline);
  asio::awaitable<int> raise_once(std::uint64_t least, TimePoint deadline);
  int take(const Reply& reply);

  std::shared_ptr<Session> session_;
  const std::string path_;
  std::unique_ptr<Session::Watch> watch_;
  std::shared_ptr<std::uint64_t> events_ = std::make_shared<std::uint64_t>(0);
  std::uint64_t heard_ = 0;  ///< of those, before the last reading
  bool known_ = false;
  std::string newer_;  ///< The refusal of a newer format that was read last.
  std::vector<std::uint64_t> offsets_{0};
};

}  // namespace dlock::zookeeper
