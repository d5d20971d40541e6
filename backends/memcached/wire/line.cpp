// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/line.hpp"

#include <algorithm>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

/// A procedure gives up a little before its caller, so that its own result arrives in time.
constexpr std::chrono::milliseconds kHeadStart{15};
/// The largest number of procedures under way. It also limits the commands in doubt if a server is
/// slow or silent.
constexpr std::size_t kAtOnce = 256;

}  // namespace

Line::Line(Env& env, Session::Settings settings, Session::OnFacts on_info)
    : env_(env), session_(env, std::move(settings), std::move(on_info)), turns_(env, kAtOnce) {}

void Line::stop() {
  is_stopped_ = true;
  session_.close();
  turns_.end_waiting();
}

TimePoint Line::commands_until(TimePoint deadline) const {
  const auto left = deadline - env_.now();
  return deadline - std::min<Duration>(kHeadStart, left / 4);
}

Failure Line::why_not() const { return failure(is_stopped_ ? Error::closed : Error::line_busy); }

}  // namespace dlock::memcached
