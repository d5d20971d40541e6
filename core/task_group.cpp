// SPDX-License-Identifier: Apache-2.0
#include "core/task_group.hpp"

namespace dlock::core {

asio::awaitable<bool> TaskGroup::wait_idle(TimePoint deadline) {
  while (running_ > 0) {
    const bool notified = co_await idle_.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return true;
}

}  // namespace dlock::core
