// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/worker.hpp"

#include <boost/asio/post.hpp>
#include <new>
#include <thread>

#include "backends/memcached/error.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {
namespace {

/// The worker gives up a little before the caller, so that its own word arrives in time.
constexpr std::chrono::milliseconds kHeadStart{15};
/// Until what could not be made for want of memory is tried again.
constexpr std::chrono::milliseconds kPauseForMemory{20};

}  // namespace

Worker::Worker(Env& env, Session::Settings settings)
    : env_(env),
      settings_(std::move(settings)),
      loop_(env.executor()),
      queue_(settings_.driver.make_queue()),
      end_(env) {}

void Worker::start() {
  if (started_) return;
  // Env tries again until there is a thread; jobs wait until then, or for their deadline.
  // The last reference must not die on the helper's thread: `done` keeps us, on the loop.
  dlock::Job job = [this] { main(); };
  dlock::Job done = [self = shared_from_this()] {
    self->ended_ = true;
    self->end_.notify();
  };
  env_.run_blocking(std::move(job), std::move(done));
  started_ = true;
}

void Worker::stop() {
  stopping_.store(true);
  queue_->close();
  // Those who wait may go on in here, and leave the set. A copy of it would take memory.
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    const auto job = *at;
    job->finished.notify();
    at = under_way_.upper_bound(job);
  }
}

Failure Worker::why_not(bool started) const {
  if (stopping_.load()) return failure(Error::closed);
  if (!has_thread_.load()) {
    return failure(Error::no_thread, "no thread can be made (RLIMIT_NPROC or pids.max?)");
  }
  return failure(started ? Error::no_answer : Error::line_busy);
}

Failure Worker::why_not(const Job& job, bool started, bool waited) const {
  if (stopping_.load()) return failure(Error::closed);
  // One that has ended without a result, or was not waited for.
  if (!waited || (job.is_finished && started)) return failure_of(std::bad_alloc());
  return why_not(started);
}

asio::awaitable<bool> Worker::ended(TimePoint deadline) {
  const auto self = shared_from_this();
  if (!started_ || ended_ || !has_thread_.load()) co_return true;
  co_await end_.wait_until(deadline);
  co_return ended_;
}

bool Worker::post(std::shared_ptr<Job> job) {
  if (!started_ || stopping_.load()) return false;
  // The way back is made here: once the job is under way it takes no memory to end it.
  dlock::Job back = [job] {
    job->is_finished = true;
    job->finished.notify();
  };
  queue_->post([this, job = std::move(job), back = std::move(back)]() mutable {
    carry_out(std::move(job), std::move(back));
  });
  return true;
}

void Worker::main() {
  has_thread_.store(true);
  // The thread must last: without it no job would ever be done again.
  while (!stopping_.load()) {
    try {
      serve();
      return;
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kPauseForMemory);
    }
  }
}

void Worker::serve() {
  Session session(env_, settings_, [this](const ServerInfo& info) {
    asio::post(loop_, [self = shared_from_this(), info] { self->on_info(info); });
  });
  session_ = &session;
  const struct Over {
    Session*& place;
    ~Over() { place = nullptr; }
  } over{session_};
  queue_->run();
}

// The job always goes back to the loop, also when nobody waits any more: it dies there.
void Worker::carry_out(std::shared_ptr<Job> job, dlock::Job back) noexcept {
  if (!stopping_.load() && job->claim_state(State::running)) {
    const auto left = job->deadline - env_.now();
    session_->until(job->deadline - std::min<Duration>(kHeadStart, left / 4));
    try {
      job->work(*session_);
    } catch (const std::exception&) {  // out of memory: the caller hears `maybe done`
      // Of an answer that was half read nobody knows the rest.
      session_->drop();
    }
  }
  job.reset();
  env_.post(std::move(back));
}

}  // namespace dlock::memcached
