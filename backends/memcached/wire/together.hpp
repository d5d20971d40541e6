// SPDX-License-Identifier: Apache-2.0
//
// Several coroutines at once, all awaited: what goes to several servers must not wait for each in
// turn. Loop only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// The results, in order. A task that throws, or that there was no memory to start, leaves a
/// default value.
template <class T>
class Together : public std::enable_shared_from_this<Together<T>> {
 public:
  using Task = boost::asio::awaitable<T>;

  Together(Env& env, std::size_t count)
      : env_(env), done_(env), results_(count), begun_(count, false), open_(count) {}

  boost::asio::awaitable<std::vector<T>> run(std::vector<Task> tasks) {
    const auto self = this->shared_from_this();
    for (std::size_t i = 0; i < tasks.size(); ++i) start(i, std::move(tasks[i]));
    while (open_ > 0) co_await done_.wait_until(kNever);
    co_return std::move(results_);
  }

 private:
  // The task says itself that it has ended: what co_spawn() needs for that may be missing.
  void start(std::size_t i, Task task) {
    try {
      boost::asio::co_spawn(env_.executor(), one(this->shared_from_this(), i, std::move(task)),
                            boost::asio::detached);
    } catch (const std::bad_alloc&) {
      if (!begun_[i]) end();
    }
  }

  static boost::asio::awaitable<void> one(std::shared_ptr<Together> all, std::size_t i, Task task) {
    all->begun_[i] = true;
    try {
      auto result = co_await std::move(task);
      all->results_[i] = std::move(result);
    } catch (const std::exception&) {
      // A default value.
    }
    all->end();
  }

  void end() noexcept {
    if (--open_ == 0) done_.notify();
  }

  Env& env_;
  Signal done_;
  std::vector<T> results_;
  std::vector<bool> begun_;
  std::size_t open_;
};

/// One task alone is not started apart, and what it throws is thrown.
template <class T>
boost::asio::awaitable<std::vector<T>> together(Env& env,
                                                std::vector<boost::asio::awaitable<T>> tasks) {
  std::vector<T> results;
  if (tasks.size() == 1) {
    auto result = co_await std::move(tasks.front());
    results.push_back(std::move(result));
  } else {
    const auto all = std::make_shared<Together<T>>(env, tasks.size());
    results = co_await all->run(std::move(tasks));
  }
  co_return results;
}

}  // namespace dlock::memcached
