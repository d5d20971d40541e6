// SPDX-License-Identifier: Apache-2.0
//
// Several coroutines at once, all awaited: what goes to several servers must not wait for each in
// turn. Loop only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <memory>
#include <vector>

#include "core/signal.hpp"

namespace dlock::memcached {

/// The results, in order. A task that throws leaves a default value.
template <class T>
boost::asio::awaitable<std::vector<T>> together(core::Env& env,
                                                std::vector<boost::asio::awaitable<T>> tasks) {
  struct State {
    explicit State(core::Env& loop) : done(loop) {}
    core::Signal done;
    std::vector<T> results;
    std::size_t open = 0;
  };
  auto state = std::make_shared<State>(env);
  state->results.resize(tasks.size());
  state->open = tasks.size();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    boost::asio::co_spawn(env.executor(), std::move(tasks[i]),
                          [state, i](const std::exception_ptr& error, T result) {
                            if (!error) state->results[i] = std::move(result);
                            if (--state->open == 0) state->done.notify();
                          });
  }
  while (state->open > 0) co_await state->done.wait_until(kNever);
  co_return std::move(state->results);
}

}  // namespace dlock::memcached
