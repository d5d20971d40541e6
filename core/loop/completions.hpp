// SPDX-License-Identifier: Apache-2.0
//
// Completions: runs completion handlers without an executor. One thread, made for the first of
// them, runs them one after the other. Losses are reported on other threads, which wait for no
// handler.
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
  /// Returns one for the time without a loop: after a close, in a fork()ed child.
  static std::shared_ptr<Completions> alone();

  /// Keeps this alive. Costs no thread until something is posted.
  asio::any_io_executor executor();
  void post(Job job);
  /// As Crew::finish(). Jobs that are posted later still run.
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
