// SPDX-License-Identifier: Apache-2.0
#include "core/loop/completions.hpp"

#include <exception>
#include <utility>

namespace dlock::core {

struct Completions::Executor {
  std::shared_ptr<Completions> target;

  asio::execution_context& query(asio::execution::context_t) const noexcept {
    return target->context_;
  }
  static constexpr asio::execution::blocking_t::never_t query(
      asio::execution::blocking_t) noexcept {
    return {};
  }
  Executor require(asio::execution::blocking_t::never_t) const { return *this; }
  bool operator==(const Executor&) const noexcept = default;
  template <class F>
  void execute(F f) const {
    target->post(Job(std::move(f)));
  }
};

class Completions::Handler final : public Errand {
 public:
  Handler(std::shared_ptr<Completions> owner, Job job)
      : owner_(std::move(owner)), job_(std::move(job)) {}

  void run() override {
    try {
      job_();
    } catch (const std::exception& error) {
      tell(error.what());
    } catch (...) {
      tell("an exception of an unknown type");
    }
  }

 private:
  void tell(const char* what) const {
    if (owner_->on_exception_) owner_->on_exception_(what);
  }

  const std::shared_ptr<Completions> owner_;
  Job job_;
};

std::shared_ptr<Completions> Completions::alone() {
  auto crew = std::make_shared<Crew>(Crew::Limits{.rest = std::chrono::milliseconds(0)});
  return std::make_shared<Completions>(std::move(crew), OnException());
}

asio::any_io_executor Completions::executor() { return Executor{shared_from_this()}; }

void Completions::post(Job job) {
  crew_->post(std::make_shared<Handler>(shared_from_this(), std::move(job)));
}

}  // namespace dlock::core
