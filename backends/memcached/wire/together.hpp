// SPDX-License-Identifier: Apache-2.0
//
// Runs several coroutines at once and awaits them all: requests to several servers must not wait
// for each other. Loop only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// The results, in order. A task that throws leaves a default value.
template <class T>
class Together : public std::enable_shared_from_this<Together<T>> {
 public:
  using Task = boost::asio::awaitable<T>;

  Together(Env& env, std::size_t count) : env_(env), done_(env), results_(count), open_(count) {}

  boost::asio::awaitable<std::vector<T>> run(std::vector<Task> tasks) {
    const auto self = this->shared_from_this();
    for (std::size_t i = 0; i < tasks.size(); ++i) spawn(env_, one(self, i, std::move(tasks[i])));
    while (open_ > 0) co_await done_.wait_until(kNever);
    co_return std::move(results_);
  }

 private:
  static boost::asio::awaitable<void> one(std::shared_ptr<Together> all, std::size_t i, Task task) {
    try {
      auto result = co_await std::move(task);
      all->results_[i] = std::move(result);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
    }
    if (--all->open_ == 0) all->done_.notify();
  }

  Env& env_;
  Signal done_;
  std::vector<T> results_;
  std::size_t open_;
};

/// A single task is not spawned, and its exceptions are passed on.
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
