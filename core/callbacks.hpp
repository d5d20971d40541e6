// SPDX-License-Identifier: Apache-2.0
//
// The one thread on which user code runs: state callbacks, stop callbacks, completion handlers
// without an executor of their own. Apart from the loop, so that user code may block, or take a
// lock, without delaying a renewal; and never a caller's thread, which may hold the user's mutexes.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>

#include "core/env.hpp"

namespace dlock::core {

class Callbacks : public std::enable_shared_from_this<Callbacks> {
 public:
  void start();
  asio::any_io_executor executor() { return io_.get_executor(); }
  void post(Job job);
  /// Runs what was posted, then ends the thread. From the callback thread itself: does not wait.
  void finish() noexcept;

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::thread thread_;
};

}  // namespace dlock::core
