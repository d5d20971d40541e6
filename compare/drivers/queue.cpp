// SPDX-License-Identifier: Apache-2.0
//
// A line of dlock's waiters with a session each, and one release: for the herd.
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "compare/drivers/worker.hpp"
#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"

namespace dlock::compare {

namespace {

LockManager open_quietly(const std::string& url) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, options);
}

/// Told by the first that is granted.
class FirstGrant {
 public:
  void tell() {
    const std::scoped_lock guard(mutex_);
    granted_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [this] { return granted_; })) {
      throw std::runtime_error("nobody in line was granted the lock");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool granted_ = false;
};

}  // namespace

void run_queue(const Job& job) {
  const auto count = static_cast<std::size_t>(job.number("count", 10));
  LockManager first = open_quietly(job.text("url"));
  auto held = first.lock("herd")->acquire();
  auto grant = std::make_shared<FirstGrant>();
  std::vector<LockManager> managers;
  std::vector<detail::Canceller> cancels;
  for (std::size_t i = 0; i < count; ++i) {
    managers.push_back(open_quietly(job.text("url")));
    cancels.push_back(managers.back().lock("herd")->start_acquire(
        {.wait = kWaitForever}, [grant](error_code error, LockHandle handle) {
          if (error) return;
          static std::vector<LockHandle> kept;  // the line must not move on
          static std::mutex mutex;
          const std::scoped_lock guard(mutex);
          kept.push_back(std::move(handle));
          grant->tell();
        }));
  }
  const bool lined_up = testkit::eventually(
      testkit::patience(), [&] { return first.status("herd").waiting.size() == count; });
  if (!lined_up) throw std::runtime_error("the waiters did not line up");
  await_go();
  if (const auto error = held.release()) throw std::runtime_error(error.message());
  grant->wait();
  say({{"event", "result"}});
  std::string line;
  read_command(line);  // the suite ends us: hundreds of sessions need not be closed one by one
}

}  // namespace dlock::compare
