// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_lock.hpp"

#include "core/store/acquisition.hpp"
#include "dlock/detail/grant.hpp"

namespace dlock::simulation {
namespace {

/// A part of it: passes everything on, and tells the recorder.
class RecordedGrant final : public detail::Grant {
 public:
  RecordedGrant(SimLock::Asker asker, const std::string& name, std::shared_ptr<core::Hold> hold)
      : asker_(std::move(asker)), hold_(std::move(hold)), state_(std::make_shared<State>()) {
    state_->grant = asker_.recorder->granted(*asker_.process, asker_.actor, name, hold_);
    ++asker_.parts->held;
    asker_.parts->holds.push_back(hold_);
    hold_->on_state([asker = asker_, state = state_](HandleState now, LossReason why) {
      if (now == HandleState::lost) tell(asker, *state, why);
    });
  }

  const Identity& identity() const noexcept override { return hold_->identity(); }
  HandleState state() noexcept override { return hold_->state(); }
  LossReason reason() const noexcept override { return hold_->reason(); }
  std::optional<std::chrono::nanoseconds> remaining() noexcept override {
    return hold_->remaining();
  }
  std::stop_token stop_token() const noexcept override { return hold_->stop_token(); }
  void on_state(StateCallback callback) override { hold_->on_state(std::move(callback)); }
  void release(Done done) noexcept override {
    give_back();
    hold_->release(std::move(done));
  }
  void release_quietly(Done done) noexcept override {
    give_back();
    hold_->release_quietly(std::move(done));
  }
  void wait_quiet() noexcept override { hold_->wait_quiet(); }
  void post_callback(Job job) override { hold_->post_callback(std::move(job)); }

 private:
  struct State {
    GrantId grant = 0;
    bool is_told = false;
  };
  static void tell(const SimLock::Asker& asker, State& state, LossReason why) {
    if (std::exchange(state.is_told, true)) return;
    auto& lost_at = asker.parts->lost_at;
    if (!lost_at) lost_at = asker.process->world().now();
    asker.recorder->told_lost(*asker.process, state.grant, why);
  }
  void give_back() {
    --asker_.parts->held;
    if (hold_->state() == HandleState::lost) {
      tell(asker_, *state_, hold_->reason());
      return asker_.recorder->dropped(*asker_.process, state_->grant);
    }
    asker_.recorder->releasing(*asker_.process, state_->grant);
  }

  const SimLock::Asker asker_;
  const std::shared_ptr<core::Hold> hold_;
  const std::shared_ptr<State> state_;
};

}  // namespace

SimLock::SimLock(Asker asker, std::shared_ptr<core::Store> store, std::string name)
    : asker_(std::move(asker)), store_(std::move(store)), name_(std::move(name)) {}

detail::Canceller SimLock::start_acquire(AcquireOptions options, detail::AcquireHandler handler) {
  core::Acquisition::Request request;
  request.name = name_;
  const auto& settings = store_->setup().settings;
  request.limits.connect_timeout = settings.connect_timeout;
  request.limits.retry = settings.retry;
  request.limits.once = options.wait && options.wait->count() == 0;
  if (options.wait && options.wait->count() > 0 && *options.wait != kWaitForever) {
    request.limits.deadline = asker_.process->now() + *options.wait;
  }
  const auto observed = asker_.prefix + name_;
  asker_.recorder->wanted(*asker_.process, asker_.actor, observed);
  auto told = [asker = asker_, name = observed, handler = std::move(handler)](
                  error_code ec, LockHandle handle) mutable {
    if (ec) {
      asker.recorder->given_up(*asker.process, asker.actor, name);
      return handler(ec, {});
    }
    auto hold = core::HandleAccess::hold(handle);
    detail::GrantAccess::take(handle);
    handler(ec, LockHandle(std::make_shared<RecordedGrant>(asker, name, std::move(hold))));
  };
  auto acquisition = std::make_shared<core::Acquisition>(store_, request, std::move(told));
  store_->acquire(acquisition);
  return [weak = std::weak_ptr(acquisition)] {
    if (const auto alive = weak.lock()) alive->cancel();
  };
}

}  // namespace dlock::simulation
