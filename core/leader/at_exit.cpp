// SPDX-License-Identifier: Apache-2.0
#include "core/leader/at_exit.hpp"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/process/of_process.hpp"

namespace dlock::core {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};

std::atomic<Clock::rep> ends_at{0};

struct Standing {
  std::mutex mutex;
  std::vector<std::weak_ptr<EndsAtExit>> all;
};

void end_all() noexcept {
  auto& standing = of_process<Standing>();
  std::vector<std::weak_ptr<EndsAtExit>> all;
  {
    const std::lock_guard lock(standing.mutex);
    all.swap(standing.all);
  }
  const auto until = Clock::now() + kPatience;
  ends_at = until.time_since_epoch().count();
  for (const auto& each : all) {
    if (const auto found = each.lock()) found->request_end();
  }
  for (const auto& each : all) {
    if (const auto found = each.lock()) found->wait_end(until);
  }
}

struct Guard {
  Guard() = default;
  ~Guard() { end_all(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

}  // namespace

void end_at_exit(const std::shared_ptr<EndsAtExit>& what) {
  static const Guard guard;
  auto& standing = of_process<Standing>();
  const std::lock_guard lock(standing.mutex);
  std::erase_if(standing.all, [&](const auto& each) {
    const auto found = each.lock();
    return !found || found == what;
  });
  standing.all.push_back(what);
}

std::optional<Clock::time_point> exit_deadline() noexcept {
  const auto at = ends_at.load();
  if (at == 0) return std::nullopt;
  return Clock::time_point(Clock::duration(at));
}

}  // namespace dlock::core
