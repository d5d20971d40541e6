// SPDX-License-Identifier: Apache-2.0
//
// When a registration of somebody else is over. No two clocks are compared: it is over when the
// same beat was seen for a whole lease and a margin, on the observer's own clock. The program
// itself counted its lease from before it sent that beat, so it has stopped believing by then.
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlock/clock.hpp"
#include "migration/dual/window.hpp"

namespace dlock::core::migration {

class WindowWatch {
 public:
  /// What a read said that was sent and answered then.
  void see(const Window& window, TimePoint sent, TimePoint answered);

  /// By what was seen last.
  bool is_over(const Program& program) const;
  /// When a read that is sent then could say that it is over; kNever if it was never seen.
  TimePoint over_at(const Program& program) const;
  /// Those of the last window that are over.
  std::vector<std::string> over() const;

  /// So long after its first sight a beat is over.
  static Duration patience(std::chrono::milliseconds lease);
  /// Until when the program itself believes, after a request that was sent then.
  static TimePoint believed_until(TimePoint sent, std::chrono::milliseconds lease);

 private:
  struct Sight {
    std::uint64_t beat = 0;
    TimePoint first{};  ///< when the answer with it came
  };
  std::string born_;
  std::chrono::milliseconds lease_{0};
  TimePoint last_sent_{};
  std::map<std::string, Sight> sights_;
};

}  // namespace dlock::core::migration
