// SPDX-License-Identifier: Apache-2.0
//
// The SPI over Queue: SQLite blocks, so every call goes to a helper thread, one after the other;
// the loop only waits.
#include "sqlite.hpp"

#include <deque>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"
#include "queue.hpp"

namespace sqlite_locks {
namespace {

namespace asio = boost::asio;
using namespace dlock;  // NOLINT: a backend speaks of little else

std::int64_t ns(TimePoint when) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

/// How long the place of a waiter that does not ask any more is kept.
constexpr std::chrono::seconds kPatience{4};

class SqliteClaim final : public Claim {
 public:
  SqliteClaim(ClaimRequest request, Env& env) : Claim(std::move(request)), wake(env) {}
  Signal wake;
  bool granted = false;
  std::int64_t before = 0;
};

/// Runs work on a helper thread, in the order in which it was asked for: a request that its caller
/// has given up is over before the next one begins.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(Env& env, std::string path, int patience_ms)
      : env_(env), path_(std::move(path)), patience_ms_(patience_ms) {}

  template <class T>
  struct Outcome {
    std::optional<T> value;
    Failure failure;
    bool unknown = false;  ///< it may still be carried out
  };

  /// g++ 12 destroys temporaries of a co_await twice: give the work a name before.
  template <class Work, class T = std::invoke_result_t<Work, Queue&>>
  asio::awaitable<Outcome<T>> run(Work work, TimePoint deadline) {
    auto outcome = std::make_shared<Outcome<T>>();
    const OneShot<bool> done(env_);
    waiting_.push_back({[self = shared_from_this(), work = std::move(work), outcome] {
                          try {
                            if (!self->queue_) self->open();
                            outcome->value = work(*self->queue_);
                          } catch (const std::exception& error) {
                            outcome->failure = make_failure(errc::unavailable, error.what());
                          }
                        },
                        [done] { done.set(true); }});
    begin_next();
    const auto finished = co_await done.get_until(deadline);
    if (!finished) {
      Outcome<T> late;
      late.failure = make_failure(errc::unavailable, "no answer from the file in time");
      late.unknown = true;
      co_return late;
    }
    co_return std::move(*outcome);
  }

 private:
  struct Task {
    Job body;
    Job done;
  };

  void open() {
    database_.emplace(path_, patience_ms_);
    queue_.emplace(*database_);
  }
  void begin_next() {
    if (busy_ || waiting_.empty()) return;
    auto task = std::move(waiting_.front());
    waiting_.pop_front();
    env_.run_blocking(std::move(task.body),
                      [self = shared_from_this(), done = std::move(task.done)]() mutable {
                        self->busy_ = false;
                        done();
                        self->begin_next();
                      });
    busy_ = true;  // `done` never comes inside the call
  }

  Env& env_;
  const std::string path_;
  const int patience_ms_;
  std::optional<Database> database_;  ///< the helper thread's
  std::optional<Queue> queue_;        ///< likewise
  std::deque<Task> waiting_;
  bool busy_ = false;
};

class SqliteBackend final : public Backend {
 public:
  SqliteBackend(const StoreOptions& options, Env& env)
      : env_(env),
        lease_(options.duration("lease")),
        poll_(options.duration("poll_interval")),
        worker_(std::make_shared<Worker>(
            env, options.path, static_cast<int>(options.duration("busy_timeout").count()))) {
    capabilities_.guarantee = Guarantee::exclusive;
    capabilities_.assumptions = {
        {"one_machine", "all who use the file run on one machine, and its disk keeps its word"}};
    capabilities_.fair = true;
    capabilities_.token = TokenStrength::durable;
    capabilities_.wake_up = WakeUp::poll;
    capabilities_.lease_scope = LeaseScope::claim;
    capabilities_.lease = lease_;
    capabilities_.shortest_lease = std::chrono::seconds(1);
    capabilities_.longest_lease = std::chrono::hours(24);
    capabilities_.can_list = true;
    capabilities_.can_evict = true;
  }

  asio::awaitable<Failure> connect(TimePoint deadline) override {
    const auto work = [](Queue&) { return true; };
    const auto done = co_await worker_->run(work, deadline);
    co_return done.failure;
  }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  ClaimPtr make_claim(ClaimRequest request) override {
    return std::make_shared<SqliteClaim>(std::move(request), env_);
  }

  asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) override {
    const auto ours = std::static_pointer_cast<SqliteClaim>(claim);
    // Believed from before it is asked for; the file counts from when it is carried out.
    const auto sent = env_.now();
    const auto lease = ours->request().lease;
    const auto work = [&env = env_, ours, lease](Queue& queue) {
      const auto now = env.now();
      return queue.claim(ours->request(), ns(now), ns(now + lease), ns(now + kPatience));
    };
    const auto asked = co_await worker_->run(work, deadline);
    ClaimAnswer answer;
    answer.failure = asked.failure;
    if (!asked.value) {
      answer.status = asked.unknown ? ClaimStatus::unknown : ClaimStatus::unavailable;
      co_return answer;
    }
    ours->granted = asked.value->granted;
    ours->before = asked.value->before;
    answer.status = asked.value->granted   ? ClaimStatus::granted
                    : asked.value->waiting ? ClaimStatus::waiting
                                           : ClaimStatus::busy;
    if (ours->granted) {
      answer.token = asked.value->token;
      answer.validity = {sent + lease, sent + lease / 3};
    }
    co_return answer;
  }

  asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) override {
    auto ours = std::static_pointer_cast<SqliteClaim>(claim);
    // Who is next looks often; a place must not be forgotten meanwhile.
    const auto pause = std::min<Duration>(poll_ * ours->before, kPatience / 4);
    co_await ours->wake.wait_until(std::min(deadline, env_.now() + pause));
  }
  void interrupt(Claim& claim) noexcept override { static_cast<SqliteClaim&>(claim).wake.notify(); }

  asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                    TimePoint deadline) override {
    const auto sent = env_.now();
    const auto work = [&env = env_, claims](Queue& queue) {
      std::vector<std::pair<Queue::Renewed, std::string>> all;
      for (const auto& claim : claims) {
        const auto now = env.now();
        const auto& id = claim->request().owner.id;
        auto mark = queue.mark_of(id);
        all.emplace_back(queue.renew(id, ns(now), ns(now + claim->request().lease)),
                         std::move(mark));
      }
      return all;
    };
    const auto asked = co_await worker_->run(work, deadline);
    std::vector<ExtendAnswer> answers(claims.size());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      auto& answer = answers[i];
      answer.failure = asked.failure;
      if (!asked.value) {
        answer.status = ExtendStatus::unknown;  // some of them may have been renewed
        continue;
      }
      const auto lease = claims[i]->request().lease;
      const auto& [renewed, mark] = (*asked.value)[i];
      const bool ours = renewed == Queue::Renewed::yes;
      answer.status = ours ? ExtendStatus::extended : ExtendStatus::gone;
      if (ours) answer.validity = {sent + lease, sent + lease / 3};
      if (renewed == Queue::Renewed::gone) answer.reason = LossReason::removed;
      if (renewed == Queue::Renewed::broken) {
        answer.reason = LossReason::broken;
        answer.broken_by = break_words(read_break(mark));
      }
    }
    co_return answers;
  }

  // Whatever was asked before is over when this is carried out: there are no late copies.
  asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool, TimePoint deadline) override {
    const auto work = [claim](Queue& queue) { return queue.release(claim->request().owner.id); };
    const auto asked = co_await worker_->run(work, deadline);
    ReleaseAnswer answer;
    answer.failure = asked.failure;
    if (!asked.value) {
      answer.status = asked.unknown ? ReleaseStatus::unknown : ReleaseStatus::unavailable;
      co_return answer;
    }
    const bool was_granted = std::exchange(static_cast<SqliteClaim&>(*claim).granted, false);
    answer.status =
        was_granted && !*asked.value ? ReleaseStatus::not_holder : ReleaseStatus::released;
    co_return answer;
  }

  asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) override {
    const auto work = [&env = env_, name](Queue& queue) {
      return queue.status(name, ns(env.now()));
    };
    auto asked = co_await worker_->run(work, deadline);
    co_return Result<LockStatus>{std::move(asked.value), std::move(asked.failure)};
  }
  asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                        TimePoint deadline) override {
    const auto work = [&env = env_, prefix](Queue& queue) {
      std::vector<LockStatus> all;
      const auto now = ns(env.now());
      for (const auto& name : queue.held_names(prefix, now)) {
        all.push_back(queue.status(name, now));
      }
      return all;
    };
    auto asked = co_await worker_->run(work, deadline);
    co_return Result<std::vector<LockStatus>>{std::move(asked.value), std::move(asked.failure)};
  }

  asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) override {
    using Outcome = std::pair<Queue::Broken, std::int64_t>;
    const auto now = ns(env_.now());
    const auto work = [now, request](Queue& queue) {
      std::int64_t until = now;
      const auto broken = queue.break_lock(request, now, until);
      return Outcome(broken, until);
    };
    const auto asked = co_await worker_->run(work, deadline);
    EvictAnswer answer;
    answer.failure = asked.failure;
    if (!asked.value) co_return answer;
    const auto& [broken, until] = *asked.value;
    if (broken == Queue::Broken::not_held) {
      answer.failure = make_failure(errc::not_found, "no client holds it");
    } else if (broken == Queue::Broken::other_token) {
      answer.failure = make_failure(errc::not_holder, "held with another token");
    }
    answer.is_free = broken == Queue::Broken::yes;
    answer.within =
        std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(until - now));
    co_return answer;
  }

  asio::awaitable<void> close(TimePoint) override { co_return; }

 private:
  Env& env_;
  const std::chrono::milliseconds lease_;
  const std::chrono::milliseconds poll_;
  std::shared_ptr<Worker> worker_;
  Capabilities capabilities_;
};

std::vector<OptionSpec> option_specs() {
  using Kind = OptionSpec::Kind;
  std::vector<OptionSpec> specs;
  specs.push_back({.name = "lease",
                   .kind = Kind::duration,
                   .default_value = "10s",
                   .min = 1'000,
                   .max = 86'400'000,
                   .choices = {},
                   .help = "how long a dead holder keeps the lock"});
  specs.push_back({.name = "poll_interval",
                   .kind = Kind::duration,
                   .default_value = "20ms",
                   .min = 1,
                   .max = 500,
                   .choices = {},
                   .help = "how often a waiter looks"});
  specs.push_back({.name = "busy_timeout",
                   .kind = Kind::duration,
                   .default_value = "5s",
                   .min = 1,
                   .max = 60'000,
                   .choices = {},
                   .help = "how long to wait for another process that writes"});
  return specs;
}

}  // namespace

const BackendDescriptor& backend() {
  static const BackendDescriptor descriptor{
      .name = "sqlite",
      .schemes = {"sqlite"},
      .address = BackendDescriptor::Address::path,
      .options = option_specs(),
      .lease_option = "lease",
      .create = [](const StoreOptions& options, Env& env, EventSink&) -> std::unique_ptr<Backend> {
        return std::make_unique<SqliteBackend>(options, env);
      },
  };
  return descriptor;
}

}  // namespace sqlite_locks
