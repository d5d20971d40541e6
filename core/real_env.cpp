// SPDX-License-Identifier: Apache-2.0
#include "core/real_env.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <ctime>
#include <system_error>
#include <thread>

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

}  // namespace

RealEnv::RealEnv() : timer_(io_, make_timer()), random_(seeded()) { await_timer(); }

RealEnv::~RealEnv() {
  std::unique_lock lock(helpers_mutex_);
  no_helpers_.wait(lock, [&] { return helpers_ == 0; });
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

TimerId RealEnv::call_at(TimePoint when, Job job) {
  const auto id = timers_.add(when, std::move(job));
  if (!running_due_) arm();
  return id;
}

// Does not re-arm: a spurious wake-up costs less than a system call at every cancelled timer.
void RealEnv::cancel(TimerId id) noexcept { timers_.remove(id); }

void RealEnv::run_blocking(Job job, Job done) {
  // Rare (closing a silent session, an fsync per 65,536 tickets), so a thread each.
  {
    const std::lock_guard lock(helpers_mutex_);
    ++helpers_;
  }
  std::thread([this, job = std::move(job), done = std::move(done)]() mutable {
    job();
    // Before `done`: what both share then ends with `done`, on the loop.
    job = {};
    asio::post(io_, [done = std::move(done)]() mutable { done(); });
    // Notified under the mutex: the destructor must not return in between.
    const std::lock_guard lock(helpers_mutex_);
    --helpers_;
    no_helpers_.notify_all();
  }).detach();
}

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
  timer_.async_wait(asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& ec) {
                      if (ec) return;
                      std::uint64_t expirations = 0;
                      [[maybe_unused]] const auto got =
                          ::read(timer_.native_handle(), &expirations, sizeof expirations);
                      run_due();
                      await_timer();
                    });
}

void RealEnv::run_due() {
  armed_ = kNever;
  running_due_ = true;
  while (auto job = timers_.take_due(now())) job();
  running_due_ = false;
  arm();
}

}  // namespace dlock::core
