// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/worker.hpp"

#include <boost/asio/post.hpp>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

/// The worker gives up a little before the caller, so that its own word arrives in time.
constexpr std::chrono::milliseconds kHeadStart{15};

}  // namespace

Worker::Worker(core::Env& env, Session::Settings settings)
    : env_(env),
      settings_(std::move(settings)),
      loop_(env.executor()),
      queue_(settings_.driver.make_queue()),
      end_(env) {}

void Worker::start() {
  if (started_) return;
  started_ = true;
  // Env tries again until there is a thread; jobs wait until then, or for their deadline.
  // The last reference must not die on the helper's thread: `done` keeps us, on the loop.
  core::Job job = [this] { main(); };
  core::Job done = [self = shared_from_this()] {
    self->ended_ = true;
    self->end_.notify();
  };
  env_.run_blocking(std::move(job), std::move(done));
}

void Worker::stop() {
  stopping_.store(true);
  queue_->close();
  // Those who wait may go on in here.
  const auto jobs = under_way_;
  for (const auto& job : jobs) job->finished.notify();
}

Failure Worker::why_not(bool started) const {
  if (stopping_.load()) return failure(Error::closed);
  if (!has_thread_.load()) {
    return failure(Error::no_thread, "no thread can be made (RLIMIT_NPROC or pids.max?)");
  }
  return failure(started ? Error::no_answer : Error::line_busy);
}

asio::awaitable<bool> Worker::ended(TimePoint deadline) {
  const auto self = shared_from_this();
  if (!started_ || ended_ || !has_thread_.load()) co_return true;
  co_await end_.wait_until(deadline);
  co_return ended_;
}

bool Worker::post(std::shared_ptr<Job> job) {
  if (!started_ || stopping_.load()) return false;
  queue_->post([this, job = std::move(job)]() mutable { carry_out(std::move(job)); });
  return true;
}

void Worker::main() {
  has_thread_.store(true);
  if (stopping_.load()) return;
  Session session(env_, settings_, [this](const ServerFacts& facts) {
    asio::post(loop_, [self = shared_from_this(), facts] { self->on_facts(facts); });
  });
  session_ = &session;
  queue_->run();
  session_ = nullptr;
}

// The job always goes back to the loop, also when nobody waits any more: it dies there.
void Worker::carry_out(std::shared_ptr<Job> job) {
  if (!stopping_.load() && job->claim_state(State::running)) {
    const auto left = job->deadline - env_.now();
    session_->until(job->deadline - std::min<Duration>(kHeadStart, left / 4));
    try {
      job->work(*session_);
    } catch (const std::exception&) {  // out of memory: the caller hears `maybe done`
    }
  }
  asio::post(loop_, [job = std::move(job)] {
    job->is_finished = true;
    job->finished.notify();
  });
}

}  // namespace dlock::memcached
