// SPDX-License-Identifier: Apache-2.0
//
// The local store between processes: exclusion, order, crashes, stopped processes, wake-ups.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/rules/format.hpp"
#include "backends/local/rules/names.hpp"
#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local {
namespace {

using test::Store;
using testkit::patience;
using testkit::Process;
using testkit::within;
using namespace std::chrono_literals;

class LocalProcesses : public ::testing::Test {
 protected:
  std::string path() const { return (dir_ / "locks").string(); }

  std::unique_ptr<Process> peer(std::vector<std::string> args) const {
    testkit::ProcessOptions options;
    options.argv = {DLOCK_LOCAL_PEER, path()};
    options.argv.insert(options.argv.end(), args.begin(), args.end());
    return std::make_unique<Process>(std::move(options));
  }

  /// A process that holds `name`, and its token.
  std::pair<std::unique_ptr<Process>, std::uint64_t> holder(const std::string& name) const {
    auto process = peer({"hold", name});
    const auto line = process->read_line(patience());
    EXPECT_TRUE(line && line->starts_with("held ")) << process->collected_stderr();
    return {std::move(process), line ? std::stoull(line->substr(5)) : 0};
  }

  /// Waits until `count` wait for the lock.
  static bool waiters_are(Store& store, const std::string& name, std::size_t count) {
    return store.run_until([&] { return store.status(name).waiting.size() == count; });
  }

  testkit::TempDir dir_{"dlock-local"};
};

TEST_F(LocalProcesses, ExcludeEachOtherAndTokensRise) {
  constexpr int kProcesses = 8;
  constexpr int kRounds = 150;
  const auto file = (dir_ / "number").string();
  std::vector<std::unique_ptr<Process>> peers;
  for (int i = 0; i < kProcesses; ++i) {
    peers.push_back(peer({"loop", "stress/a", std::to_string(kRounds), file}));
  }
  for (const auto& process : peers) {
    const auto status = process->wait(patience());
    ASSERT_TRUE(status && status->success());
  }
  long number = 0;
  std::ifstream(file) >> number;
  EXPECT_EQ(number, kProcesses * kRounds) << "none was lost";
  std::ifstream log(file + ".log");
  std::uint64_t token = 0;
  std::uint64_t last = 0;
  int grants = 0;
  while (log >> token) {
    EXPECT_GT(token, last);
    last = token;
    ++grants;
  }
  EXPECT_EQ(grants, kProcesses * kRounds);
}

TEST_F(LocalProcesses, AreServedInTheOrderOfTheirArrival) {
  auto [first, token] = holder("a");
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  std::vector<std::unique_ptr<Process>> waiters;
  for (std::size_t i = 0; i < 6; ++i) {
    waiters.push_back(peer({"hold", "a"}));
    ASSERT_TRUE(waiters_are(store, "a", i + 1));
  }
  first->close_stdin();
  for (const auto& waiter : waiters) {
    const auto line = waiter->read_line(within(10s));
    ASSERT_TRUE(line && line->starts_with("held "));
    const auto next = std::stoull(line->substr(5));
    EXPECT_EQ(next, ++token) << "the ticket drawn at arrival";
    waiter->close_stdin();
  }
}

TEST_F(LocalProcesses, AKilledHolderFreesTheLockAtOnce) {
  auto [process, token] = holder("a");
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  std::optional<ClaimAnswer> answer;
  ASSERT_EQ(store.ask(claim).status, ClaimStatus::waiting);
  store.start(store.acquire(claim, kNever), answer);
  store.run_until([&] { return answer.has_value(); }, 20ms);
  process->kill_and_wait();
  ASSERT_TRUE(store.run_until([&] { return answer.has_value(); }, 10s));
  EXPECT_EQ(answer->status, ClaimStatus::granted);
  EXPECT_GT(*answer->token, token);
  EXPECT_EQ(store.status("a").owner->id, claim->request().owner.id);
}

TEST_F(LocalProcesses, AKilledWaiterBlocksNobody) {
  auto [first, token] = holder("a");
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto waiter = peer({"hold", "a"});
  ASSERT_TRUE(waiters_are(store, "a", 1));
  const auto last = peer({"hold", "a"});
  ASSERT_TRUE(waiters_are(store, "a", 2));
  waiter->kill_and_wait();
  EXPECT_TRUE(waiters_are(store, "a", 1));
  first->close_stdin();
  EXPECT_TRUE(last->read_line(within(10s)));
}

TEST_F(LocalProcesses, AStoppedHolderKeepsTheLock) {
  auto [process, token] = holder("a");
  ASSERT_TRUE(process->pause());
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  EXPECT_EQ(store.run(store.acquire(claim, Store::in(300ms))).status, ClaimStatus::waiting);
  EXPECT_TRUE(process->resume());
  process->close_stdin();
  EXPECT_EQ(store.run(store.acquire(claim, Store::in(10s))).status, ClaimStatus::granted);
}

// Those who are in the queue go on; those who come are told that it is busy; no loop stands still.
TEST_F(LocalProcesses, AProcessStoppedWithTheGuardHoldsUpNoLoopAndNobodyInTheQueue) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holding = store.make("a");
  ASSERT_EQ(store.ask(holding).status, ClaimStatus::granted);
  const auto queued = store.make("a");
  ASSERT_EQ(store.ask(queued).status, ClaimStatus::waiting);

  const auto guard = peer({"guard", file_name("a")});
  ASSERT_EQ(guard->read_line(patience()), "ready");
  ASSERT_TRUE(guard->pause());

  const auto comer = store.make("a");
  std::optional<ClaimAnswer> came;
  store.start(store.acquire(comer, kNever), came);
  const auto started = BoottimeClock::now();
  EXPECT_EQ(store.ask(store.make("a", false)).status, ClaimStatus::busy);
  EXPECT_LT(BoottimeClock::now() - started, 5s);
  const auto other = store.make("b");
  EXPECT_EQ(store.ask(other).status, ClaimStatus::granted) << "the loop goes on";

  EXPECT_EQ(store.release(holding), ReleaseStatus::released);
  EXPECT_EQ(store.run(store.acquire(queued, Store::in(10s))).status, ClaimStatus::granted);
  EXPECT_EQ(store.release(queued), ReleaseStatus::released);
  EXPECT_FALSE(came);

  guard->kill_and_wait();
  ASSERT_TRUE(store.run_until([&] { return came.has_value(); }, 10s));
  EXPECT_EQ(came->status, ClaimStatus::granted);
}

TEST_F(LocalProcesses, F73_AForkedChildDoesNotKeepTheLockOfItsKilledParent) {
  const auto parent = peer({"fork", "a"});
  const auto line = parent->read_line(patience());
  ASSERT_TRUE(line && line->starts_with("held "));
  const auto child = static_cast<pid_t>(std::stol(line->substr(5)));
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  EXPECT_EQ(store.ask(store.make("a", false)).status, ClaimStatus::busy);
  parent->kill_and_wait();
  const auto claim = store.make("a");
  EXPECT_EQ(store.run(store.acquire(claim, Store::in(10s))).status, ClaimStatus::granted);
  EXPECT_EQ(::kill(child, SIGKILL), 0) << "the child was alive all the time";
}

// The holder is dead, and what is written in the file names a process that lives: its number was
// given to another. Of two who find that at the same time, one gets the lock.
TEST_F(LocalProcesses, F77_APidInTheFileDecidesNothing) {
  auto [dead, last] = holder("a");
  std::uint64_t token = last;
  dead->kill_and_wait();
  {
    std::fstream file(path() + "/" + file_name("a"),
                      std::ios::binary | std::ios::in | std::ios::out);
    std::array<char, kRecordSize> bytes{};
    file.seekg(static_cast<std::streamoff>(kHolderOffset));
    file.read(bytes.data(), bytes.size());
    const std::vector<unsigned char> read(bytes.begin(), bytes.end());
    auto record = parse_record(read);
    ASSERT_TRUE(record);
    record->owner.pid = ::getpid();
    std::array<unsigned char, kRecordSize> changed{};
    encode_record(*record, changed);
    file.seekp(static_cast<std::streamoff>(kHolderOffset));
    file.write(reinterpret_cast<const char*>(changed.data()), changed.size());
  }
  for (int round = 0; round < 10; ++round) {
    const auto one = peer({"hold", "a"});
    const auto two = peer({"hold", "a"});
    // Whoever is second waits: it is in line before the first lets go.
    Store store(path());
    ASSERT_FALSE(store.connect().error);
    ASSERT_TRUE(waiters_are(store, "a", 1));
    std::optional<std::string> first;
    std::optional<std::string> second;
    ASSERT_TRUE(testkit::eventually(patience(), [&] {
      first = one->read_line(within(0s));
      second = two->read_line(within(0s));
      return first || second;
    }));
    EXPECT_FALSE(first && second);
    EXPECT_FALSE((first ? two : one)->read_line(within(20ms))) << "exactly one";
    const auto check = [&token](const std::string& line) {
      const auto next = std::stoull(line.substr(5));
      EXPECT_GT(next, token);
      token = next;
    };
    check(first ? *first : *second);
    (first ? one : two)->kill_and_wait();
    const auto other = (first ? two : one)->read_line(patience());
    ASSERT_TRUE(other);
    check(*other);
  }
}

// Other families of locks on our files: they neither keep us out nor let anybody in, which is what
// the manual says of them.
TEST_F(LocalProcesses, F79_FlockAndClassicRecordLocksAreNotOurs) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto first = store.make("a");
  ASSERT_EQ(store.ask(first).status, ClaimStatus::granted);
  ASSERT_EQ(store.release(first), ReleaseStatus::released);
  const auto file = path() + "/" + file_name("a");
  const int tool = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(tool, 0);
  ASSERT_EQ(::flock(tool, LOCK_EX | LOCK_NB), 0);
  const auto holder = store.make("a");
  EXPECT_EQ(store.ask(holder).status, ClaimStatus::granted) << "under a flock of somebody's";
  Store another(path());
  ASSERT_FALSE(another.connect().error);
  EXPECT_EQ(another.ask(another.make("a", false)).status, ClaimStatus::busy);
  ::close(tool);
  EXPECT_EQ(another.ask(another.make("a", false)).status, ClaimStatus::busy);
  const auto manual = testkit::read_file(DLOCK_LOCAL_MANUAL);
  EXPECT_NE(manual.find("Tools that use `flock`"), std::string::npos);
  EXPECT_TRUE(testkit::read_file(file).starts_with("dlock/1\n")) << "whose it is";
}

TEST_F(LocalProcesses, AnInheritedDescriptorKeepsTheLock) {
  auto store = std::make_unique<Store>(path());
  ASSERT_FALSE(store->connect().error);
  auto claim = store->make("a");
  ASSERT_EQ(store->ask(claim).status, ClaimStatus::granted);
  testkit::ProcessOptions options;
  options.argv = {"cat"};
  // A copy: the descriptor itself is closed in every fork()ed child.
  const int copy = ::fcntl(claim->inheritable_descriptor(), F_DUPFD_CLOEXEC, 0);
  options.keep_fds = {copy};
  Process child(std::move(options));
  ::close(copy);
  // As if we were killed: the descriptor is closed, nothing is released.
  const auto token = *store->ask(claim).token;
  claim.reset();
  store.reset();

  Store other(path());
  ASSERT_FALSE(other.connect().error);
  EXPECT_EQ(other.ask(other.make("a", false)).status, ClaimStatus::busy);
  EXPECT_EQ(other.status("a").token, token);
  child.close_stdin();
  ASSERT_TRUE(child.wait(patience()));
  EXPECT_EQ(other.ask(other.make("a", false)).status, ClaimStatus::granted);
}

TEST_F(LocalProcesses, AFileThatACommandHasOpenIsNotKeptForTheNextClaim) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto shares_the_next = [&store](bool is_inherited) {
    auto claim = store.make("a");
    EXPECT_EQ(store.ask(claim).status, ClaimStatus::granted);
    const int copy = ::fcntl(claim->inheritable_descriptor(), F_DUPFD_CLOEXEC, 0);
    if (is_inherited) claim->mark_inherited();
    store.release(claim);
    auto next = store.make("a");
    EXPECT_EQ(store.ask(next).status, ClaimStatus::granted);
    // The system names no lock of the open file by which it is asked.
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    EXPECT_EQ(::fcntl(copy, F_OFD_GETLK, &lock), 0);
    ::close(copy);
    store.release(next);
    return lock.l_type == F_UNLCK;
  };
  EXPECT_FALSE(shares_the_next(true));
  EXPECT_TRUE(shares_the_next(false)) << "what the first is told apart from";
}

/// A claim that waits, its watch set. Each store is another process as far as locks go.
struct Waiting {
  Waiting(Store& in, const std::string& name) : store(in), claim(in.make(name)) {
    EXPECT_EQ(store.ask(claim).status, ClaimStatus::waiting);
    store.start(store.acquire(claim, kNever), answer);
    EXPECT_FALSE(store.run_until([&] { return answer.has_value(); }, 5ms));
  }
  bool granted() {
    return store.run_until([&] { return answer.has_value(); }, 20s) &&
           answer->status == ClaimStatus::granted;
  }
  Store& store;
  const ClaimPtr claim;
  std::optional<ClaimAnswer> answer;
};

constexpr int kHandOvers = 20;
// Less than if one of each round had waited for the next look.
constexpr auto kAllWoken = kHandOvers * 250ms / 2;

TEST_F(LocalProcesses, AReleaseWakesWhoCameWhileTheFileWasKept) {
  Store one(path());
  Store two(path());
  ASSERT_FALSE(one.connect().error);
  ASSERT_FALSE(two.connect().error);
  Duration waited{};
  for (int i = 0; i < kHandOvers; ++i) {
    auto& holding = i % 2 == 0 ? one : two;
    const auto alone = holding.make("a");
    ASSERT_EQ(holding.ask(alone).status, ClaimStatus::granted);
    ASSERT_EQ(holding.release(alone), ReleaseStatus::released);
    const auto holder = holding.make("a");
    ASSERT_EQ(holding.ask(holder).status, ClaimStatus::granted) << "in the file that was kept";
    Waiting waiter(i % 2 == 0 ? two : one, "a");
    const auto released = BoottimeClock::now();
    ASSERT_EQ(holding.release(holder), ReleaseStatus::released);
    ASSERT_TRUE(waiter.granted());
    waited += BoottimeClock::now() - released;
    waiter.store.release(waiter.claim);
  }
  EXPECT_LT(waited, kAllWoken);
}

// The next one of the same process needs no close, and the one behind him has it all the same.
TEST_F(LocalProcesses, AReleaseWakesWhoStandsBetweenAndBehindThoseOfItsProcess) {
  Store one(path());
  Store two(path());
  ASSERT_FALSE(one.connect().error);
  ASSERT_FALSE(two.connect().error);
  Duration waited{};
  for (int i = 0; i < kHandOvers; ++i) {
    const auto holder = one.make("a");
    ASSERT_EQ(one.ask(holder).status, ClaimStatus::granted);
    std::vector<std::unique_ptr<Waiting>> waiters;
    for (auto* store : {&two, &one, &one, &two}) {
      waiters.push_back(std::make_unique<Waiting>(*store, "a"));
    }
    const auto released = BoottimeClock::now();
    ASSERT_EQ(one.release(holder), ReleaseStatus::released);
    for (const auto& waiter : waiters) {
      ASSERT_TRUE(waiter->granted());
      ASSERT_EQ(waiter->store.release(waiter->claim), ReleaseStatus::released);
    }
    waited += BoottimeClock::now() - released;
  }
  EXPECT_LT(waited, kAllWoken);
}

TEST_F(LocalProcesses, AWaiterThatLeavesWakesWhoStoodBehindIt) {
  Store one(path());
  Store two(path());
  Store three(path());
  for (auto* store : {&one, &two, &three}) ASSERT_FALSE(store->connect().error);
  Duration waited{};
  for (int i = 0; i < kHandOvers; ++i) {
    const auto holder = one.make("a");
    ASSERT_EQ(one.ask(holder).status, ClaimStatus::granted);
    const auto between = two.make("a");
    ASSERT_EQ(two.ask(between).status, ClaimStatus::waiting);
    Waiting last(three, "a");
    one.release(holder);
    EXPECT_FALSE(last.store.run_until([&] { return last.answer.has_value(); }, 5ms));
    const auto left = BoottimeClock::now();
    two.release(between);
    ASSERT_TRUE(last.granted());
    waited += BoottimeClock::now() - left;
    three.release(last.claim);
  }
  EXPECT_LT(waited, kAllWoken);
}

}  // namespace
}  // namespace dlock::local
