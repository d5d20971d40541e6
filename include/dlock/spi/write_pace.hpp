// SPDX-License-Identifier: Apache-2.0
//
// When a connection that carries many requests at once writes them. As a rule at the end of the
// loop's turn, all in one write. But where all callers have been answered at once, and ask again in
// one turn, client and server would take turns for ever, each idle while the other works: then the
// first half leaves before the second has been asked, and from there on one half is with the server
// while the other is with the callers.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dlock::inline v0 {

/// One connection's. Pure; not thread-safe.
class WritePace {
 public:
  /// A request was added. `unanswered`: how many there are with it, `unwritten`: how many of those
  /// have not been written. True: they should be now; else at the end of the turn.
  bool asked(std::size_t unanswered, std::size_t unwritten) noexcept {
    if (unanswered == 1) crowd_ = std::exchange(most_, 0);
    most_ = std::max(most_, unanswered);
    return unwritten == unanswered && crowd_ > 0 && unwritten >= crowd_ / 2;
  }

 private:
  std::size_t most_ = 0;   ///< unanswered at once, since there was none
  std::size_t crowd_ = 0;  ///< the same of the time before that
};

}  // namespace dlock::inline v0
