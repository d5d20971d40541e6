// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/line.hpp"

#include <algorithm>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

/// A procedure gives up a little before its caller, so that its own word arrives in time.
constexpr std::chrono::milliseconds kHeadStart{15};

}  // namespace

Line::Line(Env& env, Session::Settings settings, Session::OnFacts on_info)
    : env_(env), session_(env, std::move(settings), std::move(on_info)) {}

void Line::stop() noexcept {
  is_stopped_ = true;
  session_.close();
  for (auto* turn : turns_) turn->called_.notify();
}

void Line::begin(TimePoint deadline) {
  const auto left = deadline - env_.now();
  session_.until(deadline - std::min<Duration>(kHeadStart, left / 4));
}

Failure Line::why_not() const { return failure(is_stopped_ ? Error::closed : Error::line_busy); }

Line::Turn::Turn(Line& line) : line_(line), called_(line.env_) { line_.turns_.push_back(this); }

Line::Turn::~Turn() {
  const bool was_ours = is_ours();
  line_.turns_.erase(std::find(line_.turns_.begin(), line_.turns_.end(), this));
  if (was_ours && !line_.turns_.empty()) line_.turns_.front()->called_.notify();
}

bool Line::Turn::is_ours() const noexcept { return line_.turns_.front() == this; }

}  // namespace dlock::memcached
