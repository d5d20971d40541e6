// SPDX-License-Identifier: Apache-2.0
//
// A thread pool that is short of threads tries again by the timer of a loop.
#pragma once

#include <boost/asio/post.hpp>
#include <memory>

#include "core/loop/crew.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

/// Soon calls Crew::hire(), which calls this again if that did not help. Any thread.
inline void hire_later(Env& env, std::weak_ptr<Crew> crew) {
  asio::post(env.executor(), [&env, crew = std::move(crew)] {
    env.call_at(env.now() + std::chrono::milliseconds(100), [crew] {
      if (const auto alive = crew.lock()) alive->hire();
    });
  });
}

/// Makes a pool that does so. `env` outlives its finish().
inline std::shared_ptr<Crew> make_crew(Env& env, Crew::Limits limits) {
  auto itself = std::make_shared<std::weak_ptr<Crew>>();
  auto crew = std::make_shared<Crew>(limits, [&env, itself] { hire_later(env, *itself); });
  *itself = crew;
  return crew;
}

}  // namespace dlock::core
