// SPDX-License-Identifier: Apache-2.0
//
// F73: fork() while holding. The child's copies are closed; the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class ForkContract : public Contract {};
DLOCK_CONTRACT(ForkContract);

/// What the child found wrong: its exit status, 0 for nothing.
enum Wrong {
  kNone = 0,
  kState = 1,
  kReason = 2,
  kCheck = 3,
  kStop = 4,
  kAcquire = 5,
  kTry = 6,
  kStatus = 7,
  kList = 8,
  kEvict = 9,
  kMutex = 10,
  kRelease = 11,
  kConnect = 12,
  kRemaining = 13,
  kInspect = 14,
  kException = 15,
};

// Everything a child may call with what it inherited; then all of it is destroyed.
int use_everything(LockManager manager, std::shared_ptr<DistributedLock> lock, LockHandle held,
                   LockHandle /*other*/, std::unique_ptr<Mutex> mutex) {
  if (held.state() != HandleState::lost) return kState;
  if (held.loss_reason() != LossReason::closed) return kReason;
  if (held.remaining() && held.remaining()->count() > 0) return kRemaining;
  if (error_of([&] { held.check(); }) != errc::lock_lost) return kCheck;
  // Nobody asks for a stop in the child; the call itself must work.
  static_cast<void>(held.stop_token());
  held.on_state([](HandleState, LossReason) {});
  if (error_of([&] { (void)lock->acquire(); }) != errc::closed) return kAcquire;
  if (error_of([&] { (void)lock->try_acquire(); }) != errc::closed) return kTry;
  if (error_of([&] { (void)manager.lock("new")->acquire(); }) != errc::closed) return kAcquire;
  if (error_of([&] { manager.connect(); }) != errc::closed) return kConnect;
  if (error_of([&] { manager.status("a"); }) != errc::closed) return kStatus;
  if (error_of([&] { manager.list(); }) != errc::closed) return kList;
  if (error_of([&] { manager.evict("a", 1, {.at_once = true}); }) != errc::closed) return kEvict;
  if (error_of([&] { mutex->lock(); }) != errc::closed) return kMutex;
  if (error_of([&] { mutex->try_lock(); }) != errc::closed) return kMutex;
  if (mutex->held() != nullptr) return kMutex;
  try {
    mutex->unlock();
  } catch (const LockError&) {
    return kMutex;
  }
  if (error_of([&] { manager.inspect(); }) != errc::closed) return kInspect;
  if (!held.release()) return kRelease;
  manager.close();
  return kNone;  // the other handle goes unreleased, as one may
}

int status_of_child(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_P(ForkContract, F73_TheChildsCopiesAreClosedAndTheParentGoesOn) {
  auto manager = open();
  auto lock = manager.lock("a");
  auto held = lock->acquire();
  auto other = manager.lock("b")->acquire();
  auto mutex = std::make_unique<Mutex>(manager.lock("c"));
  mutex->lock();

  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // a call that hangs ends the child
    int wrong = kException;
    try {
      wrong = use_everything(std::move(manager), std::move(lock), std::move(held), std::move(other),
                             std::move(mutex));
    } catch (...) {  // must not reach the test framework: this is a copy of it
      ::_exit(kException);
    }
    ::_exit(wrong);
  }
  EXPECT_EQ(status_of_child(child), kNone);

  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_TRUE(observer().status("a").held);
  EXPECT_TRUE(observer().status("b").held);
  // The lease is over by now if renewals had stopped.
  if (const auto left = held.remaining()) {
    const auto deadline = testkit::Clock::now() + *left + 500ms;
    EXPECT_FALSE(eventually(deadline, [&] { return held.state() == HandleState::lost; }));
  }
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(open().lock("a")->try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(other.release());
  mutex->unlock();
  for (const std::string name : {"a", "b", "c"}) EXPECT_TRUE(becomes_free(name));
  EXPECT_TRUE(lock->acquire({.wait = 30s})) << "and can be taken again";
}

TEST_P(ForkContract, F73_AWaitUnderWayIsNotDisturbed) {
  auto manager = open();
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  auto waiter = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(); });
  ASSERT_TRUE(waiters_become("a", 1));
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    { const LockManager inherited(std::move(manager)); }
    ::_exit(kNone);
  }
  EXPECT_EQ(status_of_child(child), kNone);
  EXPECT_EQ(waiting("a"), 1U);
  other->release();
  EXPECT_EQ(waiter.get().state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::contract
