// SPDX-License-Identifier: Apache-2.0
#include "migration/move/drive_all.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::core::migration {
namespace {

/// So many claims and requests at once are no burden to any store.
constexpr std::size_t kMostAtOnce = 500;

}  // namespace

asio::awaitable<std::vector<StepReport>> drive_all(std::shared_ptr<Coordinator> coordinator,
                                                   Env& env, Goal goal,
                                                   std::vector<std::string> names) {
  std::vector<StepReport> reports;
  for (std::size_t first = 0; first < names.size(); first += kMostAtOnce) {
    std::vector<OneShot<StepReport>> under_way;
    const auto last = std::min(first + kMostAtOnce, names.size());
    for (std::size_t i = first; i < last; ++i) {
      OneShot<StepReport> one(env);
      under_way.push_back(one);
      asio::co_spawn(env.executor(), coordinator->take(goal, names[i]),
                     [one, name = names[i]](const std::exception_ptr& error, StepReport report) {
                       end_if_out_of_memory(error);
                       if (error) {
                         report.name = name;
                         report.text = "the store's answer was not understood";
                       }
                       one.set(std::move(report));
                     });
    }
    for (const auto& one : under_way) {
      auto report = co_await one.get_until(kNever);
      reports.push_back(std::move(*report));
    }
  }
  co_return reports;
}

}  // namespace dlock::core::migration
