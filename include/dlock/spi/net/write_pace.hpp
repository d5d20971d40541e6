// SPDX-License-Identifier: Apache-2.0
//
// WritePace: when a connection with many requests in flight writes them. Usually it writes once, at
// the end of the loop's turn. If all callers are answered at once and ask again in one turn, client
// and server each stay idle while the other works. Then the first half is written before the second
// half is asked, so that client and server work at the same time.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstddef>

namespace dlock::inline v0 {

/// One connection's. Pure; not thread-safe.
class WritePace {
 public:
  /// A request was added. `unanswered`: how many there are with it, `unwritten`: how many of those
  /// have not been written. True: they should be now; else at the end of the turn.
  bool asked(std::size_t unanswered, std::size_t unwritten) noexcept;

  /// The requests of this turn are written at its end. For requests that are sent together, while
  /// none is unanswered.
  void gather() noexcept { most_ = crowd_ = 0; }

 private:
  std::size_t most_ = 0;   ///< unanswered at once, since there was none
  std::size_t crowd_ = 0;  ///< the same of the time before that
};

}  // namespace dlock::inline v0
