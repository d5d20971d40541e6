// SPDX-License-Identifier: Apache-2.0
//
// Completions: where completion handlers run that have no executor of their own. One thread, made
// when the first of them is there, so that they run one after the other; apart from the tellings of
// losses, which wait for no handler.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <memory>

#include "core/loop/crew.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

class Completions : public std::enable_shared_from_this<Completions> {
 public:
  /// `failed`: what a handler threw.
  using OnException = std::function<void(const char* what)>;

  Completions(std::shared_ptr<Crew> crew, OnException on_exception)
      : crew_(std::move(crew)), on_exception_(std::move(on_exception)) {}
  /// One for the time when there is no loop: after a close, in a fork()ed child.
  static std::shared_ptr<Completions> alone();

  /// Keeps this alive. Costs no thread until something is posted.
  asio::any_io_executor executor();
  void post(Job job);
  /// As Crew::finish(). What is posted later still runs.
  void finish(std::chrono::steady_clock::time_point until) noexcept { crew_->finish(until); }

 private:
  class Context : public asio::execution_context {
   public:
    ~Context() {
      shutdown();
      destroy();
    }
  };
  struct Executor;
  class Handler;

  const std::shared_ptr<Crew> crew_;
  const OnException on_exception_;
  Context context_;
};

}  // namespace dlock::core
