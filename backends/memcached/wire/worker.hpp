// SPDX-License-Identifier: Apache-2.0
//
// The thread that talks to one server: libmemcached blocks, the loop must not. Jobs go in, in
// order, and their results come back to the loop. The caller is never held up past his deadline:
// a job that has not begun by then never will (surely not done), one that is under way is left to
// itself (maybe done), and whatever is asked next finds out what it did.
//
// One worker per server, so that a stopped server holds up its own locks only. The thread is one of
// Env's helpers, which it waits for at its end.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <new>
#include <optional>
#include <set>

#include "backends/memcached/wire/session.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// A job's end, as far as the caller waited for it.
template <class T>
struct Ran {
  std::optional<T> result;
  bool started = false;  ///< without a result: maybe done
  Failure why;           ///< without a result; without the server's name
};

class Worker : public std::enable_shared_from_this<Worker> {
 public:
  template <class T>
  using Work = detail::UniqueFunction<T(Session&)>;

  Worker(Env& env, Session::Settings settings);

  /// Called on the loop whenever the server said how it is. Set before start().
  std::function<void(ServerInfo)> on_info;

  // Loop only.
  void start();
  /// Jobs that wait are dropped; the one under way is bounded by its deadline. Whoever waits for
  /// one is answered at once: `closed`.
  void stop();
  /// True once the thread has ended, or if it never began: it ends at once then.
  asio::awaitable<bool> ended(TimePoint deadline);

  template <class T>
  asio::awaitable<Ran<T>> run(Work<T> work, TimePoint deadline) {
    auto job = std::make_shared<TypedJob<T>>(env_, std::move(work));
    job->deadline = deadline;
    const auto self = shared_from_this();
    Ran<T> ran;
    const UnderWay under_way(under_way_, job);
    if (!post(job)) {
      ran.why = why_not(false);
      co_return ran;
    }
    bool waited = false;
    try {
      co_await job->finished.wait_until(deadline);
      waited = true;
    } catch (const std::bad_alloc&) {
      // Not waited for, as if the deadline had come.
    }
    if (job->is_finished) ran.result = std::move(job->result);
    ran.started = ran.result || !job->claim_state(State::abandoned);
    if (!ran.result) ran.why = why_not(*job, ran.started, waited);
    co_return ran;
  }

 private:
  enum class State { queued, running, abandoned };

  struct Job {
    explicit Job(Env& env) : finished(env) {}
    virtual ~Job() = default;
    virtual void work(Session& session) = 0;
    /// From queued, once.
    bool claim_state(State next) noexcept {
      auto expected = State::queued;
      return state.compare_exchange_strong(expected, next);
    }

    std::atomic<State> state{State::queued};
    TimePoint deadline{};
    Signal finished;           ///< the loop's
    bool is_finished = false;  ///< the loop's
  };

  template <class T>
  struct TypedJob final : Job {
    TypedJob(Env& env, Work<T> what) : Job(env), body(std::move(what)) {}
    void work(Session& session) override { result.emplace(body(session)); }
    Work<T> body;
    std::optional<T> result;  ///< written by the worker before it hands the job back
  };

  using Jobs = std::set<std::shared_ptr<Job>>;

  /// One of those that somebody waits for, as long as he does.
  class UnderWay {
   public:
    UnderWay(Jobs& all, const std::shared_ptr<Job>& job)
        : all_(all), place_(all.insert(job).first) {}
    ~UnderWay() { all_.erase(place_); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    Jobs& all_;
    Jobs::iterator place_;
  };

  /// For whoever gets no result: was closed, has no thread yet, is stuck, or was not reached.
  Failure why_not(bool started) const;
  Failure why_not(const Job& job, bool started, bool waited) const;
  bool post(std::shared_ptr<Job> job);
  void main();
  void serve();
  void carry_out(std::shared_ptr<Job> job, dlock::Job back) noexcept;

  Env& env_;
  const Session::Settings settings_;
  const asio::any_io_executor loop_;
  const std::unique_ptr<JobQueue> queue_;
  Session* session_ = nullptr;  ///< the worker's
  std::atomic<bool> stopping_{false};
  Jobs under_way_;  ///< the loop's
  bool started_ = false;
  std::atomic<bool> has_thread_{false};
  bool ended_ = false;
  Signal end_;
};

}  // namespace dlock::memcached
