// SPDX-License-Identifier: Apache-2.0
//
// An ordinary user's program that meets a limit, before its first use of a store or after:
//
//   limited URL threads|descriptors cold|warm
//
// Exits with 0 if every call ended in time with a lock or an error, and all worked again when there
// was room; it exits at its limit. Else it says why not.
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::cout << what << std::endl;
}

/// A user of its test's own: the limit on threads counts those of a user, and does not count
/// root's.
bool become_ordinary() {
  if (::geteuid() != 0) return true;
  const auto user = static_cast<uid_t>(200'000 + ::getppid());
  return ::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0;
}

class Limit {
 public:
  explicit Limit(bool threads) : which_(threads ? RLIMIT_NPROC : RLIMIT_NOFILE) {
    ::getrlimit(which_, &before_);
  }
  void reach() {
    rlimit now = before_;
    now.rlim_cur = which_ == RLIMIT_NPROC ? 1 : descriptors();
    ::setrlimit(which_, &now);
  }
  void leave() { ::setrlimit(which_, &before_); }

 private:
  /// None is free below that.
  static rlim_t descriptors() {
    const int next = ::dup(0);
    ::close(next);
    return static_cast<rlim_t>(next);
  }

  const __rlimit_resource_t which_;
  rlimit before_{};
};

dlock::LockManager open(const std::string& url) {
  auto options = dlock::OpenOptions::built_in();
  options.log = [](dlock::LogLevel, std::string_view) {};
  return dlock::LockManager::open(url, options);
}

/// A lock or an error that says what is missing, in time.
bool attempt(dlock::LockManager& locks, const std::string& name) {
  const auto start = Clock::now();
  dlock::error_code ec;
  dlock::Diagnostics diagnostics;
  dlock::AcquireOptions options;
  options.wait = 3s;
  options.diagnostics = &diagnostics;
  auto held = locks.lock(name)->acquire(options, {}, ec);
  expect(Clock::now() - start < 8s, "acquire took too long");
  if (held) {
    expect(held.state() == dlock::HandleState::held, "not held");
    const auto released = held.release();
    expect(!released || released == dlock::errc::unavailable, "release: " + released.message());
    return true;
  }
  expect(ec == dlock::errc::unavailable, "acquire: " + ec.message());
  std::cerr << ec.message() << ": " << diagnostics.server_text << std::endl;
  return false;
}

void expect_recovery(dlock::LockManager& locks) {
  const auto until = Clock::now() + 10s;
  while (!attempt(locks, "again")) {
    if (Clock::now() < until) continue;
    return expect(false, "does not work again");
  }
}

void cold(const std::string& url, Limit& limit) {
  limit.reach();
  try {
    auto locks = open(url);
    attempt(locks, "cold");
    limit.leave();
    expect_recovery(locks);
    limit.reach();
    locks.close();
  } catch (const dlock::LockError& error) {
    expect(error.code() == dlock::errc::unavailable, error.what());
    std::cerr << error.what() << std::endl;
  }
  limit.leave();
  auto locks = open(url);
  expect_recovery(locks);
  limit.reach();
}

void warm(const std::string& url, Limit& limit) {
  auto locks = open(url);
  expect(attempt(locks, "first"), "not even the first time");
  const auto kept = locks.lock("kept")->acquire({.wait = 5s});
  limit.reach();
  attempt(locks, "warm");
  // Longer than a lease, where one can be short: renewals go on.
  const auto until = Clock::now() + 2s;
  while (Clock::now() < until) {
    if (kept.state() == dlock::HandleState::lost) {
      expect(false, "lost");
      break;
    }
    attempt(locks, "more");
    ::usleep(100'000);
  }
  limit.leave();
  expect_recovery(locks);
  limit.reach();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ::alarm(90);
  if (!become_ordinary()) return 3;
  const std::string url = argv[1];
  Limit limit(std::string(argv[2]) == "threads");
  if (std::string(argv[3]) == "cold") {
    cold(url, limit);
  } else {
    warm(url, limit);
  }
  return failures == 0 ? 0 : 1;
}
