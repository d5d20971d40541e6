// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/tap.hpp"

#include "dlock/spi/signal.hpp"

namespace dlock::simulation {
namespace {

class Tap final : public Backend {
 public:
  Tap(std::unique_ptr<Backend> backend, Env& env, Calls& calls)
      : backend_(std::move(backend)), env_(env), calls_(calls) {}

  asio::awaitable<Failure> connect(TimePoint deadline) override {
    return struck(Call::connect, {}, backend_->connect(deadline));
  }
  const Capabilities& capabilities() const noexcept override { return backend_->capabilities(); }
  ClaimPtr make_claim(ClaimRequest request) override {
    auto owner_id = request.owner.id;
    auto claim = backend_->make_claim(std::move(request));
    calls_.claims[std::move(owner_id)] = claim;
    return claim;
  }
  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    const auto lock = claim->request().name;
    return struck(Call::claim, lock, backend_->claim(std::move(claim), deadline));
  }
  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    const UnderWay count(calls_, Call::wait);
    const auto blow = calls_.on_begin(Call::wait, claim->request().name);
    co_await fall(blow, Blow::When::before);
    co_await backend_->wait(claim, deadline);
    co_await fall(blow, Blow::When::after);
  }
  void interrupt(Claim& claim) noexcept override { backend_->interrupt(claim); }
  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override {
    const auto lock = claims.front()->request().name;
    auto renewal = backend_->extend(claims, deadline);
    auto answers = co_await struck(Call::extend, lock, std::move(renewal));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].status == ExtendStatus::gone) calls_.on_gone(claims[i]->request().owner.id);
    }
    co_return answers;
  }
  asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr held, TimePoint deadline) override {
    const auto lock = held->request().name;
    auto answer =
        co_await struck(Call::downgrade, lock, backend_->downgrade(std::move(held), deadline));
    co_return answer;
  }
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search, TimePoint deadline) override {
    const auto lock = claim->request().name;
    return struck(Call::release, lock, backend_->release(std::move(claim), search, deadline));
  }
  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override {
    return struck(Call::inspect, name, backend_->inspect(name, deadline));
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override {
    return struck(Call::list, {}, backend_->list(std::move(prefix), deadline));
  }
  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override {
    const auto name = request.name;
    return struck(Call::evict, name, backend_->evict(std::move(request), deadline));
  }
  asio::awaitable<Failure> offer(ClaimPtr held, std::string proof, std::chrono::milliseconds within,
                                 TimePoint deadline) override {
    const auto lock = held->request().name;
    return struck(Call::offer, lock,
                  backend_->offer(std::move(held), std::move(proof), within, deadline));
  }
  asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                             TimePoint deadline) override {
    return struck(Call::inspect, name, backend_->inspect_semaphore(name, deadline));
  }
  asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                     TimePoint deadline) override {
    return backend_->set_limit(std::move(name), limit, deadline);
  }
  asio::awaitable<void> close(TimePoint deadline) override { return backend_->close(deadline); }

 private:
  class UnderWay {
   public:
    UnderWay(Calls& calls, Call call) : count_(calls.under_way.at(static_cast<std::size_t>(call))) {
      ++count_;
    }
    ~UnderWay() { --count_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    int& count_;
  };

  /// The process gets back here when it may run again.
  asio::awaitable<void> fall(const Blow& blow, Blow::When when) {
    if (blow.when != when) co_return;
    blow.strike();
    co_await sleep_until(env_, env_.now());
  }

  /// `operation` has not begun: coroutines begin when they are awaited.
  template <class T>
  asio::awaitable<T> struck(Call call, std::string lock, asio::awaitable<T> operation) {
    const UnderWay count(calls_, call);
    const auto blow = calls_.on_begin(call, lock);
    co_await fall(blow, Blow::When::before);
    auto answer = co_await std::move(operation);
    co_await fall(blow, Blow::When::after);
    co_return answer;
  }

  std::unique_ptr<Backend> backend_;
  Env& env_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<Backend> tap(std::unique_ptr<Backend> backend, Env& env, Calls& calls) {
  return std::make_unique<Tap>(std::move(backend), env, calls);
}

}  // namespace dlock::simulation
