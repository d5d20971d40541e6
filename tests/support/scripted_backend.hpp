// SPDX-License-Identifier: Apache-2.0
//
// A backend whose answers a test writes down beforehand, and a host to run a Store on: for the
// core's own rules (deadlines, withdrawal, loss), which no real server can be made to show one by
// one.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/store/host.hpp"
#include "core/store/store.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::tests {

/// What the test decides and what it observes. Lives outside the backend.
struct Script {
  /// An answer and how long it takes.
  template <class Answer>
  struct Timed {
    Answer answer;
    Duration after{};
  };
  Capabilities capabilities;
  std::deque<Timed<ClaimAnswer>> claims;      ///< none left: granted for a lease
  std::deque<Timed<ExtendAnswer>> extends;    ///< none left: extended for a lease
  std::deque<Timed<ReleaseAnswer>> releases;  ///< none left: released
  std::deque<DowngradeAnswer> downgrades;     ///< none left: failed
  std::deque<Timed<Failure>> offers;          ///< none left: done
  std::vector<std::string> proofs;            ///< that were offered with
  Failure connect_failure;
  Duration connect_takes{};

  int extend_throws = 0;  ///< so many of the next throw

  EventSink* sink = nullptr;
  int claim_calls = 0;
  int wait_calls = 0;
  std::vector<std::size_t> extend_batches;
  std::vector<TimePoint> extend_times;
  std::vector<bool> release_searches;
  bool closed = false;
  bool tokens = true;            ///< grants carry tokens
  std::uint64_t last_token = 0;  ///< the next grant has one more
  std::vector<ClaimPtr> granted;
  std::function<void()> wake;                       ///< ends the present wait
  std::function<void(const ClaimPtr&)> on_grant{};  ///< before it is told
};

class ScriptedClaim final : public Claim {
 public:
  ScriptedClaim(ClaimRequest request, Env& env) : Claim(std::move(request)), woken(env) {}
  Signal woken;
};

class ScriptedBackend : public Backend {
 public:
  ScriptedBackend(Script& script, Env& env, EventSink& sink) : script_(script), env_(env) {
    script_.sink = &sink;
  }

  asio::awaitable<Failure> connect(TimePoint deadline) override {
    co_await sleep_until(env_, std::min(deadline, env_.now() + script_.connect_takes));
    co_return script_.connect_failure;
  }
  const Capabilities& capabilities() const noexcept override { return script_.capabilities; }
  ClaimPtr make_claim(ClaimRequest request) override {
    return std::make_shared<ScriptedClaim>(std::move(request), env_);
  }

  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    ++script_.claim_calls;
    const auto sent = env_.now();
    Script::Timed<ClaimAnswer> next;
    next.answer.status = ClaimStatus::granted;
    if (!script_.claims.empty()) {
      next = script_.claims.front();
      script_.claims.pop_front();
    }
    if (sent + next.after > deadline) {
      next.after = deadline - sent;
      next.answer.status = ClaimStatus::unknown;
    }
    if (next.after > Duration::zero()) co_await sleep_until(env_, sent + next.after);
    if (next.answer.status == ClaimStatus::granted) {
      if (script_.tokens) next.answer.token = ++script_.last_token;
      if (next.answer.validity.until == kNever) next.answer.validity = validity(sent);
      script_.granted.push_back(claim);
      if (script_.on_grant) script_.on_grant(claim);
    }
    co_return next.answer;
  }

  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    ++script_.wait_calls;
    auto mine = std::static_pointer_cast<ScriptedClaim>(claim);
    script_.wake = [mine] { mine->woken.notify(); };
    co_await mine->woken.wait_until(deadline);
  }
  void interrupt(Claim& claim) noexcept override {
    static_cast<ScriptedClaim&>(claim).woken.notify();
  }

  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override {
    script_.extend_batches.push_back(claims.size());
    script_.extend_times.push_back(env_.now());
    if (script_.extend_throws > 0 && script_.extend_throws-- > 0) {
      throw std::runtime_error("no renewal");
    }
    const auto sent = env_.now();
    Script::Timed<ExtendAnswer> next;
    next.answer.status = ExtendStatus::extended;
    if (!script_.extends.empty()) {
      next = script_.extends.front();
      script_.extends.pop_front();
    }
    if (sent + next.after > deadline) {
      next.after = deadline - sent;
      next.answer.status = ExtendStatus::unknown;
    }
    if (next.after > Duration::zero()) co_await sleep_until(env_, sent + next.after);
    next.answer.validity = validity(sent);
    co_return std::vector<ExtendAnswer>(claims.size(), next.answer);
  }

  asio::awaitable<ReleaseAnswer> release(ClaimPtr, bool search, TimePoint deadline) override {
    script_.release_searches.push_back(search);
    Script::Timed<ReleaseAnswer> next;
    next.answer.status = ReleaseStatus::released;
    if (!script_.releases.empty()) {
      next = script_.releases.front();
      script_.releases.pop_front();
    }
    const auto until = std::min(deadline, env_.now() + next.after);
    if (until > env_.now()) co_await sleep_until(env_, until);
    co_return next.answer;
  }

  asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr, TimePoint) override {
    DowngradeAnswer next;
    if (!script_.downgrades.empty()) {
      next = script_.downgrades.front();
      script_.downgrades.pop_front();
    }
    co_return next;
  }

  asio::awaitable<Failure> offer(ClaimPtr, std::string proof, std::chrono::milliseconds,
                                 TimePoint) override {
    script_.proofs.push_back(std::move(proof));
    Script::Timed<Failure> next;
    if (!script_.offers.empty()) {
      next = script_.offers.front();
      script_.offers.pop_front();
    }
    if (next.after > Duration::zero()) co_await sleep_until(env_, env_.now() + next.after);
    co_return next.answer;
  }

  asio::awaitable<Result<LockStatus>> inspect(std::string, TimePoint) override {
    co_return Result<LockStatus>{};
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string, TimePoint) override {
    co_return Result<std::vector<LockStatus>>{};
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest, TimePoint) override { co_return EvictAnswer(); }
  asio::awaitable<void> close(TimePoint) override {
    script_.closed = true;
    co_return;
  }

 private:
  Validity validity(TimePoint sent) const {
    if (script_.capabilities.lease_scope == LeaseScope::none) return {};
    const Duration lease = script_.capabilities.lease;
    return {sent + lease, sent + lease / 3};
  }

  Script& script_;
  Env& env_;
};

/// A manager without threads: one store under virtual time.
class VirtualHost final : public core::Host {
 public:
  Env& env() noexcept override { return env_; }
  bool post(Job job) override {
    asio::post(env_.executor(), [job = std::move(job)]() mutable { job(); });
    return true;
  }
  void post_callback(std::shared_ptr<core::Errand> errand) noexcept override {
    env_.run_blocking([] {}, [errand = std::move(errand)] { errand->run(); });
  }
  asio::any_io_executor callback_executor() override { return env_.executor(); }
  void release(const std::shared_ptr<core::Hold>& hold,
               core::Releaser::Done done) noexcept override {
    if (const auto store = hold->store().lock()) store->release(hold, std::move(done));
  }
  void log(LogLevel, std::string_view text) const noexcept override { logged.emplace_back(text); }
  VirtualEnv& virtual_env() noexcept { return env_; }

  mutable std::vector<std::string> logged;

 private:
  VirtualEnv env_;
};

/// A store over a script, and what an acquire on it came to.
class StoreFixture {
 public:
  explicit StoreFixture(LeaseScope scope = LeaseScope::claim, core::StoreSettings settings = {}) {
    script().capabilities.lease_scope = scope;
    script().capabilities.guarantee = Guarantee::exclusive;
    script().capabilities.can_adopt = true;
    script().capabilities.lease = std::chrono::seconds(9);
    script().capabilities.shortest_lease = std::chrono::seconds(1);
    script().capabilities.longest_lease = std::chrono::hours(1);
    static const BackendDescriptor descriptor = make_descriptor();
    core::Store::Setup setup;
    setup.settings = std::move(settings);
    setup.options.name = "scripted";
    setup.descriptor = &descriptor;
    store = std::make_shared<core::Store>(*host, std::move(setup));
  }

  ~StoreFixture() {
    asio::co_spawn(env().executor(), store->close(), [](const std::exception_ptr&) {});
    env().run_for(std::chrono::minutes(1));
  }
  StoreFixture(const StoreFixture&) = delete;
  StoreFixture& operator=(const StoreFixture&) = delete;

  struct Outcome {
    bool told = false;
    int times_told = 0;
    TimePoint at{};
    error_code ec;
    LockHandle handle;
    std::weak_ptr<core::Acquisition> acquisition;
  };

  std::shared_ptr<Outcome> acquire(
      std::optional<std::chrono::milliseconds> wait = std::nullopt,
      const std::string& name = "orders/42",
      const std::function<void(core::Acquisition::Request&)>& with =
          [](core::Acquisition::Request&) {}) {
    core::Acquisition::Request request;
    request.name = name;
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = env().now() + *wait;
    request.limits.connect_timeout = store->setup().settings.connect_timeout;
    request.limits.retry = store->setup().settings.retry;
    with(request);
    auto outcome = std::make_shared<Outcome>();
    auto acquisition = std::make_shared<core::Acquisition>(
        store, request, [this, outcome](error_code ec, LockHandle handle) {
          outcome->told = true;
          ++outcome->times_told;
          outcome->at = env().now();
          outcome->ec = ec;
          outcome->handle = std::move(handle);
        });
    outcome->acquisition = acquisition;
    store->acquire(std::move(acquisition));
    return outcome;
  }

  Script& script() { return current(); }
  VirtualEnv& env() { return host->virtual_env(); }
  std::shared_ptr<VirtualHost> host = std::make_shared<VirtualHost>();
  std::shared_ptr<core::Store> store;

 private:
  /// One fixture at a time per program: a BackendDescriptor's factory has no state.
  static Script*& slot() {
    static Script* script = nullptr;
    return script;
  }
  Script& current() {
    slot() = &script_;
    return script_;
  }
  static BackendDescriptor make_descriptor() {
    BackendDescriptor descriptor{};
    descriptor.name = "scripted";
    descriptor.lease_option = "lease";
    descriptor.has_adoption = true;
    descriptor.has_shared_mode = true;
    descriptor.create = [](const StoreOptions&, Env& env,
                           EventSink& sink) -> std::unique_ptr<Backend> {
      return std::make_unique<ScriptedBackend>(*slot(), env, sink);
    };
    return descriptor;
  }

  Script script_;
};

}  // namespace dlock::tests
