// SPDX-License-Identifier: Apache-2.0
#include "core/loop/real_env.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <ctime>
#include <exception>
#include <list>
#include <system_error>
#include <utility>

#include "core/loop/hire_later.hpp"
#include "dlock/detail/out_of_memory.hpp"

namespace dlock::core {
namespace {

int make_timer() {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  return fd;
}

std::mt19937_64 seeded() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return std::mt19937_64(seed);
}

/// Rare work (closing a silent session, an fsync per 65,536 tickets), so a thread each.
constexpr Crew::Limits kHelpers{.most = 1024, .rest = std::chrono::milliseconds(0)};

/// Threads that may be stuck at once, in name lookups and reads of files.
constexpr Crew::Limits kUnbounded{.most = 32, .rest = std::chrono::milliseconds(0)};

class Helped final : public Errand {
 public:
  Helped(RealEnv& env, Job job, Job done)
      : env_(env), job_(std::move(job)), done_(std::move(done)) {}

  void run() override {
    try {
      job_();
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);  // `done` finds out about any other
    }
    // Before `done`: what both share then ends with `done`, on the loop.
    job_ = {};
    env_.post(std::move(done_));
  }

 private:
  RealEnv& env_;
  Job job_;
  Job done_;
};

}  // namespace

/// The jobs of run_unbounded(). Their threads share it, and may end after the Env.
class RealEnv::Unbounded : public std::enable_shared_from_this<Unbounded> {
 public:
  explicit Unbounded(RealEnv& env) : env_(&env) {}

  void run(Job job, Job done) {
    auto errand = std::make_shared<Alone>(shared_from_this(), std::move(job));
    {
      const std::lock_guard lock(mutex_);
      if (!threads_) make_threads();
      errand->done = done_.insert(done_.end(), std::move(done));
    }
    threads_->post(std::move(errand));
  }

  /// Drops all `done`: they belong to the loop.
  void leave() noexcept {
    std::list<Job> dropped;
    {
      const std::lock_guard lock(mutex_);
      env_ = nullptr;
      dropped.swap(done_);
    }
    dropped.clear();
    if (!threads_) return;
    while (threads_->take()) continue;
    threads_->finish(std::chrono::steady_clock::now());
  }

 private:
  struct Alone final : Errand {
    Alone(std::shared_ptr<Unbounded> of, Job what) : all(std::move(of)), job(std::move(what)) {}
    void run() override {
      try {
        job();
      } catch (const std::exception& error) {
        end_if_out_of_memory(error);  // after any other exception, `done` finds no result
      }
      job = {};
      all->ended(done);
    }

    const std::shared_ptr<Unbounded> all;
    Job job;
    std::list<Job>::iterator done;
  };

  void make_threads() {
    threads_ = std::make_shared<Crew>(kUnbounded, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      const std::lock_guard lock(self->mutex_);
      if (self->env_ != nullptr) hire_later(*self->env_, self->threads_);
    });
  }

  void ended(std::list<Job>::iterator done) noexcept {
    const std::lock_guard lock(mutex_);
    if (env_ == nullptr) return;  // `done` was dropped
    env_->post(std::move(*done));
    done_.erase(done);
  }

  std::mutex mutex_;
  RealEnv* env_;  ///< null: it has ended
  std::list<Job> done_;
  std::shared_ptr<Crew> threads_;
};

RealEnv::RealEnv()
    : timer_(io_, make_timer()),
      wake_descriptor_(timer_.native_handle()),
      helpers_(make_crew(*this, kHelpers)),
      unbounded_(std::make_shared<Unbounded>(*this)),
      random_(seeded()) {
  await_timer();
}

RealEnv::~RealEnv() {
  unbounded_->leave();
  while (const auto waiting = helpers_->take()) or_end([&] { waiting->run(); });
  helpers_->finish(std::chrono::steady_clock::time_point::max());
  std::unique_lock lock(posted_mutex_);
  is_over_ = true;
  while (!posted_.empty()) {
    auto dropped = posted_.pop();
    lock.unlock();
    dropped = {};
    lock.lock();
  }
}

std::int64_t RealEnv::wall_clock_ms() const noexcept {
  timespec ts{};
  ::clock_gettime(CLOCK_REALTIME, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1000 + ts.tv_nsec / 1'000'000;
}

std::uint64_t RealEnv::random() noexcept {
  const std::lock_guard lock(random_mutex_);
  return random_();
}

/// One turn of the loop, on the calling thread: whatever is posted while it lives is its to run.
class RealEnv::Turn {
 public:
  explicit Turn(RealEnv& env) noexcept
      : env_(env), outer_(std::exchange(here, &env)), deliveries_(env.deliveries_) {
    const std::lock_guard lock(env_.posted_mutex_);
    env_.is_draining_ = true;
  }
  // An exception that left a job must not cost the others their turn.
  ~Turn() {
    here = outer_;
    std::unique_lock lock(env_.posted_mutex_);
    env_.is_draining_ = false;
    if (!env_.posted_.empty() && !env_.is_scheduled_) env_.schedule(lock);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Runs posted jobs, and the jobs that they post, up to a limit: then the sockets are polled.
  void run() {
    constexpr int kMost = 1000;
    for (int i = 0; i < kMost;) {
      Batch batch(env_);
      if (batch.jobs.empty()) return;
      for (; i < kMost && !batch.jobs.empty(); ++i) batch.jobs.pop()();
    }
  }
  static bool is_of(const RealEnv& env) noexcept { return here == &env; }

 private:
  /// All posted jobs, removed at once; jobs that are not run are put back in their place.
  struct Batch {
    explicit Batch(RealEnv& env) noexcept : jobs(env.take_posted()), env_(env) {}
    ~Batch() {
      if (!jobs.empty()) env_.put_back(std::move(jobs));
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    Jobs jobs;

   private:
    RealEnv& env_;
  };

  static thread_local const RealEnv* here;
  RealEnv& env_;
  const RealEnv* const outer_;
  const Deliveries::Turn deliveries_;
};

thread_local const RealEnv* RealEnv::Turn::here = nullptr;

/// For the coroutines and sockets of stores: inside of what the loop runs, `possibly` is at once.
class RealEnv::Executor {
 public:
  Executor(RealEnv& env, bool may_run_inside) noexcept
      : env_(&env), may_run_inside_(may_run_inside) {}

  asio::execution_context& query(asio::execution::context_t) const noexcept { return env_->io_; }
  asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
    if (may_run_inside_) return asio::execution::blocking.possibly;
    return asio::execution::blocking.never;
  }
  Executor require(asio::execution::blocking_t::never_t) const noexcept { return {*env_, false}; }
  Executor require(asio::execution::blocking_t::possibly_t) const noexcept { return {*env_, true}; }
  bool operator==(const Executor&) const noexcept = default;

  template <class F>
  void execute(F f) const {
    if (may_run_inside_ && Turn::is_of(*env_)) return f();
    const bool is_of_socket = may_run_inside_ && env_->io_.get_executor().running_in_this_thread();
    if (!is_of_socket) return env_->post(Job(std::move(f)));
    Turn turn(*env_);
    f();
    turn.run();
  }

 private:
  RealEnv* env_;
  bool may_run_inside_;
};

asio::any_io_executor RealEnv::executor() const {
  return Executor(const_cast<RealEnv&>(*this), true);  // NOLINT: Asio's executors are not const
}

void RealEnv::post(Job job) noexcept {
  if (Turn::is_of(*this)) {
    const std::lock_guard lock(posted_mutex_);
    return posted_.push(std::move(job));
  }
  {
    const std::lock_guard lock(posted_mutex_);
    if (is_over_) return;  // and so is what it would have run on
    posted_.push(std::move(job));
  }
  if (runner_ != nullptr && runner_->takes_post()) return;
  see_to_posted();
  if (runner_ != nullptr) runner_->on_post();
}

void RealEnv::see_to_posted() noexcept {
  std::unique_lock lock(posted_mutex_);
  if (!posted_.empty() && !is_scheduled_ && !is_draining_) schedule(lock);
}

bool RealEnv::has_posted() const noexcept {
  const std::lock_guard lock(posted_mutex_);
  return !posted_.empty();
}

void RealEnv::run_scheduled() {
  {
    const std::lock_guard lock(posted_mutex_);
    is_scheduled_ = false;
  }
  run_posted();
}

void RealEnv::run_posted() {
  Turn turn(*this);
  turn.run();
}

void RealEnv::schedule(std::unique_lock<std::mutex>& lock) noexcept {
  is_scheduled_ = true;
  lock.unlock();
  or_end([this] { asio::post(io_, [this] { run_scheduled(); }); });
}

RealEnv::Jobs RealEnv::take_posted() noexcept {
  const std::lock_guard lock(posted_mutex_);
  return std::move(posted_);
}

void RealEnv::put_back(Jobs jobs) noexcept {
  const std::lock_guard lock(posted_mutex_);
  posted_.push_front(std::move(jobs));
}

// By the loop's timer.
void RealEnv::interrupt() const noexcept {
  itimerspec spec{};
  spec.it_value.tv_nsec = 1;
  ::timerfd_settime(wake_descriptor_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

TimerId RealEnv::call_at(TimePoint when, Job job) {
  const auto id = timers_.add(when, std::move(job));
  if (!running_due_) arm();
  return id;
}

// Does not re-arm: a spurious wake-up costs less than a system call at every cancelled timer.
void RealEnv::cancel(TimerId id) noexcept { timers_.remove(id); }

void RealEnv::run_blocking(Job job, Job done) {
  helpers_->post(std::make_shared<Helped>(*this, std::move(job), std::move(done)));
}

void RealEnv::run_unbounded(Job job, Job done) { unbounded_->run(std::move(job), std::move(done)); }

void RealEnv::arm() {
  const auto next = timers_.next();
  if (next >= armed_) return;
  armed_ = next;
  // An absolute time of zero would disarm the timer.
  const auto at = std::max(next.time_since_epoch(), Duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (at - seconds).count();
  ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void RealEnv::await_timer() {
  auto on_timer = [this](const boost::system::error_code& ec) {
    if (ec) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto got =
        ::read(timer_.native_handle(), &expirations, sizeof expirations);
    await_timer();
    Turn turn(*this);
    run_due();
    turn.run();
  };
  timer_.async_wait(asio::posix::stream_descriptor::wait_read, std::move(on_timer));
}

void RealEnv::run_due() {
  armed_ = kNever;
  running_due_ = true;
  // An exception that leaves a job must not cost the others their timer.
  const struct Rearm {
    RealEnv& env;
    ~Rearm() {
      env.running_due_ = false;
      env.arm();
    }
  } rearm{*this};
  while (auto job = timers_.take_due(now())) job();
}

}  // namespace dlock::core
