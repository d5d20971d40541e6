// SPDX-License-Identifier: Apache-2.0
//
// The local store in one process: grants, queue, files, failures.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "backends/local/lock/notes.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/wire/directory.hpp"
#include "backends/local/wire/lock_file.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local {
namespace {

using test::Store;
using testkit::TempDir;
using namespace std::chrono_literals;

class LocalBackendTest : public ::testing::Test {
 protected:
  std::string path() const { return (dir_ / "locks").string(); }
  std::string file_of(const std::string& name) const { return path() + "/" + file_name(name); }
  Ledger ledger_of(const std::string& name) const {
    const auto text = testkit::read_file(file_of(name));
    const std::vector<unsigned char> bytes(text.begin(), text.end());
    return parse_front(bytes).ledger;
  }
  void set_ledger(const std::string& name, const Ledger& ledger) const {
    std::array<unsigned char, kHeaderSize> bytes{};
    encode_header(ledger, name.size(), Version::plain, bytes);
    LockFile file;
    ASSERT_TRUE(LockFile::open(AT_FDCWD, file_of(name).c_str(), file).ok());
    ASSERT_TRUE(file.write(bytes, 0).ok());
  }
  static std::uint64_t grant_and_release(Store& store, const std::string& name) {
    const auto claim = store.make(name);
    const auto answer = store.ask(claim);
    EXPECT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
    EXPECT_EQ(store.release(claim), ReleaseStatus::released);
    return answer.token.value_or(0);
  }

  TempDir dir_{"dlock-local"};
};

TEST_F(LocalBackendTest, DeclaresWhatItPromises) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto& capabilities = store.backend->capabilities();
  EXPECT_EQ(capabilities.guarantee, Guarantee::exclusive);
  EXPECT_FALSE(capabilities.assumptions.empty());
  EXPECT_TRUE(capabilities.shortfalls.empty());
  EXPECT_TRUE(capabilities.fair);
  EXPECT_EQ(capabilities.wake_up, WakeUp::push);
  EXPECT_EQ(capabilities.lease_scope, LeaseScope::none);
  EXPECT_TRUE(capabilities.can_list);
  EXPECT_FALSE(capabilities.can_evict);
  EXPECT_EQ(local::backend().name, "local");
  EXPECT_TRUE(local::backend().lease_option.empty());
}

TEST_F(LocalBackendTest, GrantsAndReleases) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  const auto answer = store.ask(claim);
  ASSERT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
  EXPECT_EQ(answer.validity.until, kNever);
  EXPECT_EQ(answer.validity.renew_at, kNever);
  const auto again = store.ask(claim);
  EXPECT_EQ(again.status, ClaimStatus::granted);
  EXPECT_EQ(again.token, answer.token) << "asking again changes nothing";
  EXPECT_GE(claim->inheritable_descriptor(), 0);
  EXPECT_EQ(store.release(claim), ReleaseStatus::released);
  EXPECT_EQ(store.release(claim), ReleaseStatus::released) << "nothing of ours is there";
  EXPECT_EQ(claim->inheritable_descriptor(), -1);
}

TEST_F(LocalBackendTest, TokensRiseAlsoOverRestartsOfTheClient) {
  std::uint64_t last = 0;
  for (int run = 0; run < 5; ++run) {
    Store store(path());
    ASSERT_FALSE(store.connect().error);
    for (int i = 0; i < 20; ++i) {
      const auto token = grant_and_release(store, "a");
      EXPECT_GT(token, last);
      last = token;
    }
  }
  EXPECT_LT(last, std::uint64_t{1} << 53);
}

TEST_F(LocalBackendTest, ATryLeavesNothing) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  const auto before = ledger_of("a");
  for (int i = 0; i < 10; ++i) {
    const auto tried = store.make("a", false);
    EXPECT_EQ(store.ask(tried).status, ClaimStatus::busy);
  }
  EXPECT_EQ(ledger_of("a"), before) << "not even a ticket";
  EXPECT_TRUE(store.status("a").waiting.empty());
  store.release(holder);
  EXPECT_EQ(store.ask(store.make("a", false)).status, ClaimStatus::granted);
}

TEST_F(LocalBackendTest, WaitersAreServedInTheirOrder) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  std::vector<ClaimPtr> waiters;
  std::vector<std::optional<ClaimAnswer>> answers(20);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    waiters.push_back(store.make("a"));
    ASSERT_EQ(store.ask(waiters[i]).status, ClaimStatus::waiting);
    store.start(store.acquire(waiters[i], kNever), answers[i]);
  }
  EXPECT_EQ(store.status("a").waiting.size(), answers.size());
  std::uint64_t last = 0;
  store.release(holder);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(store.run_until([&] { return answers[i].has_value(); }, 10s)) << i;
    EXPECT_EQ(answers[i]->status, ClaimStatus::granted);
    EXPECT_GT(*answers[i]->token, last);
    last = *answers[i]->token;
    for (std::size_t later = i + 1; later < answers.size(); ++later) EXPECT_FALSE(answers[later]);
    store.release(waiters[i]);
  }
}

TEST_F(LocalBackendTest, AWithdrawnWaiterLeavesNothingAndBlocksNobody) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  const auto first = store.make("a");
  const auto second = store.make("a");
  std::optional<ClaimAnswer> first_answer;
  std::optional<ClaimAnswer> second_answer;
  store.start(store.acquire(first, Store::in(30ms)), first_answer);
  store.start(store.acquire(second, kNever), second_answer);
  ASSERT_TRUE(store.run_until([&] { return first_answer.has_value(); }));
  EXPECT_EQ(first_answer->status, ClaimStatus::waiting);
  EXPECT_EQ(store.release(first), ReleaseStatus::released);
  EXPECT_EQ(store.status("a").waiting.size(), 1U);
  store.release(holder);
  ASSERT_TRUE(store.run_until([&] { return second_answer.has_value(); }, 10s));
  EXPECT_EQ(second_answer->status, ClaimStatus::granted);
}

TEST_F(LocalBackendTest, InterruptEndsAWait) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  for (const bool first_in_line : {true, false}) {
    const auto ahead = store.make("a");
    if (!first_in_line) {
      ASSERT_EQ(store.ask(ahead).status, ClaimStatus::waiting);
    }
    const auto waiter = store.make("a");
    ASSERT_EQ(store.ask(waiter).status, ClaimStatus::waiting);
    bool ended = false;
    asio::co_spawn(store.env.executor(), store.backend->wait(waiter, kNever),
                   [&](const std::exception_ptr&) { ended = true; });
    EXPECT_FALSE(store.run_until([&] { return ended; }, 20ms));
    store.backend->interrupt(*waiter);
    EXPECT_TRUE(store.run_until([&] { return ended; }, 10s));
    store.release(waiter);
    store.release(ahead);
  }
}

TEST_F(LocalBackendTest, NestedNamesNeverMeet) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  std::vector<ClaimPtr> claims;
  for (const std::string name : {"a", "a/b", "a/1700000000", "A", "a%2Fb", "a b"}) {
    claims.push_back(store.make(name));
    EXPECT_EQ(store.ask(claims.back()).status, ClaimStatus::granted) << name;
  }
  const auto longest = store.make(std::string(512, 'n'));
  EXPECT_EQ(store.ask(longest).status, ClaimStatus::granted);
  EXPECT_EQ(store.status(std::string(512, 'n')).held, true);
}

TEST_F(LocalBackendTest, ShowsHolderAndQueue) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  EXPECT_FALSE(store.status("a").held) << "a lock that nobody ever took";
  const auto holder = store.make("a");
  const auto token = store.ask(holder).token;
  const auto waiter = store.make("a");
  ASSERT_EQ(store.ask(waiter).status, ClaimStatus::waiting);
  auto status = store.status("a");
  EXPECT_EQ(status.name, "a");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, token);
  ASSERT_TRUE(status.owner);
  EXPECT_EQ(status.owner->id, holder->request().owner.id);
  EXPECT_EQ(status.owner->host, "host");
  EXPECT_EQ(status.owner->pid, 1234);
  EXPECT_EQ(status.owner->app, "test");
  ASSERT_TRUE(status.held_for);
  EXPECT_LT(*status.held_for, 60s);
  EXPECT_FALSE(status.remaining) << "no lease";
  ASSERT_EQ(status.waiting.size(), 1U);
  EXPECT_EQ(status.waiting[0].id, waiter->request().owner.id);

  // A thousand later waiters that gave up do not make the holder nameless.
  for (int i = 0; i < 300; ++i) {
    const auto passing = store.make("a");
    ASSERT_EQ(store.ask(passing).status, ClaimStatus::waiting);
    store.release(passing);
  }
  EXPECT_EQ(store.status("a").owner->id, holder->request().owner.id);

  const auto other = store.make("b/c");
  ASSERT_EQ(store.ask(other).status, ClaimStatus::granted);
  const auto long_name = "b/" + std::string(400, 'x');
  const auto long_claim = store.make(long_name);
  ASSERT_EQ(store.ask(long_claim).status, ClaimStatus::granted);
  const auto all = store.run(store.backend->list("", Store::soon()));
  ASSERT_TRUE(all.value);
  ASSERT_EQ(all.value->size(), 3U);
  EXPECT_EQ((*all.value)[0].name, "a");
  EXPECT_EQ((*all.value)[1].name, "b/c");
  EXPECT_EQ((*all.value)[2].name, long_name);
  const auto some = store.run(store.backend->list("b", Store::soon()));
  EXPECT_EQ(some.value->size(), 2U);
  store.release(other);
  EXPECT_EQ(store.run(store.backend->list("b", Store::soon())).value->size(), 1U)
      << "free locks are no news";
}

// A ticket is locked before its record is written. On a busy machine one may stand still in
// between.
TEST_F(LocalBackendTest, WhoHasJustTakenItHasAName) {
  Store onlooker(path());
  ASSERT_FALSE(onlooker.connect().error);
  std::atomic<bool> over = false;
  std::thread busy([&] {
    Store store(path());
    EXPECT_FALSE(store.connect().error);
    for (int i = 0; i < 6000; ++i) grant_and_release(store, "a");
    over = true;
  });
  int seen = 0;
  std::set<std::string> nameless;
  while (!over) {
    const auto status = onlooker.status("a");
    if (!status.held) continue;
    ++seen;
    if (status.owner->host != "host") nameless.insert(status.owner->id);
  }
  busy.join();
  EXPECT_GT(seen, 0);
  EXPECT_LE(nameless.size(), 1U) << "of " << seen << ", one is " << *nameless.begin();
}

TEST_F(LocalBackendTest, EvictIsRefusedAndNamesTheProcess) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto evict = [&](std::uint64_t token) {
    EvictRequest request{"a", token};
    return store.run(store.backend->evict(request, Store::soon())).failure;
  };
  EXPECT_EQ(evict(1).error, dlock::errc::not_found);
  const auto holder = store.make("a");
  const auto token = *store.ask(holder).token;
  EXPECT_EQ(evict(token + 1).error, dlock::errc::not_holder);
  const auto refused = evict(token);
  EXPECT_EQ(refused.error, dlock::errc::not_supported);
  EXPECT_NE(refused.text.find("pid 1234 on "), std::string::npos) << refused.text;
}

TEST_F(LocalBackendTest, RespectsTheTokenAskedFor) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto token = grant_and_release(store, "a");
  const auto claim = store.make("a", true, token + 1'000'000);
  const auto answer = store.ask(claim);
  ASSERT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
  EXPECT_GT(*answer.token, token + 1'000'000);
  store.release(claim);
  EXPECT_GT(grant_and_release(store, "a"), *answer.token);
}

TEST_F(LocalBackendTest, TokensGoOnAboveTheMarkAfterAPowerCut) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  auto ledger = ledger_of("a");
  // As if it had been written before the machine went down, and later tickets were lost.
  ledger.boot = BootId{1, 2, 3};
  set_ledger("a", ledger);
  EXPECT_GT(grant_and_release(store, "a"), ledger.raised);
  EXPECT_NE(ledger_of("a").boot, ledger.boot);
}

TEST_F(LocalBackendTest, TheMarkIsRaisedInTime) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  auto ledger = ledger_of("a");
  // The next ticket is the one that raises it.
  ledger.last = ledger.limit - kTicketsPerSync / 2 - 1;
  set_ledger("a", ledger);
  grant_and_release(store, "a");
  EXPECT_EQ(ledger_of("a").limit, ledger.limit + kTicketsPerSync);
  // Nobody raised it: who comes to the end raises it and waits for the disk.
  auto at_the_end = ledger_of("a");
  at_the_end.last = at_the_end.limit;
  set_ledger("a", at_the_end);
  EXPECT_EQ(grant_and_release(store, "a"), at_the_end.last + 1);
}

TEST_F(LocalBackendTest, F81_ADamagedCounterGrantsNothing) {
  const auto damage = [&](const std::string& name, auto change) {
    {
      Store store(path());
      ASSERT_FALSE(store.connect().error);
      grant_and_release(store, name);
      grant_and_release(store, name);
    }
    change(file_of(name));
    Store store(path());
    ASSERT_FALSE(store.connect().error);
    const auto answer = store.ask(store.make(name));
    EXPECT_EQ(answer.status, ClaimStatus::failed) << name;
    EXPECT_EQ(answer.failure.error, dlock::errc::protocol) << name;
    EXPECT_NE(answer.failure.text.find(file_of(name)), std::string::npos) << answer.failure.text;
  };
  damage("empty", [](const std::string& file) { ::truncate(file.c_str(), 0); });
  damage("short", [](const std::string& file) { ::truncate(file.c_str(), 40); });
  damage("zeros", [](const std::string& file) {
    ::truncate(file.c_str(), 0);
    ::truncate(file.c_str(), 4096);
  });
  damage("foreign", [](const std::string& file) {
    std::ofstream(file, std::ios::trunc) << std::string(5000, 'x');
  });
  damage("altered", [](const std::string& file) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put('\x7f');
  });
}

TEST_F(LocalBackendTest, F81_ACounterThatWentBackwardsGrantsNothing) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  const auto old = ledger_of("a");
  grant_and_release(store, "a");
  set_ledger("a", old);
  const auto remembered = store.ask(store.make("a"));
  EXPECT_EQ(remembered.status, ClaimStatus::failed);
  EXPECT_NE(remembered.failure.text.find("the ticket counter decreased"), std::string::npos);

  // Another process has no memory, but the kernel knows the holder's ticket.
  const auto first = grant_and_release(store, "b");
  const auto before = ledger_of("b");
  const auto holder = store.make("b");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  auto older = before;
  older.last = first - 1;
  set_ledger("b", older);
  Store another(path());
  ASSERT_FALSE(another.connect().error);
  const auto seen = another.ask(another.make("b"));
  EXPECT_EQ(seen.status, ClaimStatus::failed);
  EXPECT_NE(seen.failure.text.find("the ticket counter decreased"), std::string::npos)
      << seen.failure.text;
}

TEST_F(LocalBackendTest, F76_ARemovedFileIsALostLock) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  const auto token = *store.ask(holder).token;
  const auto waiter = store.make("a");
  std::optional<ClaimAnswer> answer;
  ASSERT_EQ(store.ask(waiter).status, ClaimStatus::waiting);
  store.start(store.acquire(waiter, kNever), answer);
  std::filesystem::remove(file_of("a"));
  ASSERT_TRUE(store.run_until([&] { return !store.sink.gone.empty(); }, 10s));
  EXPECT_EQ(store.sink.gone[0].first, holder);
  EXPECT_EQ(store.sink.gone[0].second, LossReason::removed);
  ASSERT_TRUE(store.run_until([&] { return answer.has_value(); }, 10s))
      << "the waiter begins anew, with a new file";
  EXPECT_EQ(answer->status, ClaimStatus::granted);
  EXPECT_GT(*answer->token, token) << "the new file's tickets are above those of the removed one";
  EXPECT_EQ(store.release(holder), ReleaseStatus::not_holder);
  EXPECT_TRUE(store.status("a").held) << "the next owner is left alone";
}

TEST_F(LocalBackendTest, F76_AReplacedFileIsALostLock) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  std::filesystem::copy_file(file_of("a"), dir_ / "copy");
  std::filesystem::rename(dir_ / "copy", file_of("a"));
  ASSERT_TRUE(store.run_until([&] { return !store.sink.gone.empty(); }, 10s));
  EXPECT_EQ(store.release(holder), ReleaseStatus::not_holder);
}

TEST_F(LocalBackendTest, F76_AFileRemovedBeforeItsLockIsNotGranted) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  // The guard keeps the claim from going on after it has opened the file.
  LockFile stopper;
  ASSERT_TRUE(LockFile::open(AT_FDCWD, file_of("a").c_str(), stopper).ok());
  ASSERT_TRUE(stopper.try_lock(kGuardByte).ok());
  const auto claim = store.make("a");
  std::optional<ClaimAnswer> answer;
  store.start(store.backend->claim(claim, Store::soon()), answer);
  store.run_until([&] { return answer.has_value(); }, 5ms);
  std::filesystem::remove(file_of("a"));
  stopper.close();
  ASSERT_TRUE(store.run_until([&] { return answer.has_value(); }, 10s));
  if (answer->status == ClaimStatus::busy) answer = store.ask(claim);
  ASSERT_EQ(answer->status, ClaimStatus::granted) << answer->failure.text;
  EXPECT_TRUE(std::filesystem::exists(file_of("a"))) << "on a new file";
  EXPECT_TRUE(store.status("a").held);
}

// Of a file that was kept open nothing counts once the name leads elsewhere: its queue, its guard,
// its content. The news of that has not been read when the next claim comes.
TEST_F(LocalBackendTest, AKeptFileThatIsNotTheLocksAnyMoreDecidesNothing) {
  const auto moved = (dir_ / "moved").string();
  const auto after = [&](auto change) {
    Store store(path());
    EXPECT_FALSE(store.connect().error);
    const auto token = grant_and_release(store, "a");
    LockFile old;
    EXPECT_TRUE(LockFile::open(AT_FDCWD, file_of("a").c_str(), old).ok());
    change(old, token);
    std::filesystem::rename(file_of("a"), moved);
    const auto claim = store.make("a", false);
    const auto answer = store.ask(claim);
    EXPECT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
    EXPECT_GT(answer.token.value_or(0), token);
    EXPECT_TRUE(store.status("a").held) << "in a new file";
    store.release(claim);
  };
  after([](LockFile&, std::uint64_t) {});
  after([](LockFile& old, std::uint64_t) { EXPECT_TRUE(old.try_lock(kGuardByte).ok()); });
  after([](LockFile& old, std::uint64_t token) {
    EXPECT_TRUE(old.try_lock(kTicketBase + token).ok());
  });
  after([&](LockFile&, std::uint64_t) { ::truncate(file_of("a").c_str(), 0); });
}

TEST_F(LocalBackendTest, AKeptFileThatWasReplacedLeavesTheNewOneToItsHolder) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  std::filesystem::remove(file_of("a"));
  Store another(path());
  ASSERT_FALSE(another.connect().error);
  const auto holder = another.make("a");
  ASSERT_EQ(another.ask(holder).status, ClaimStatus::granted);
  EXPECT_EQ(store.ask(store.make("a", false)).status, ClaimStatus::busy);
}

TEST_F(LocalBackendTest, FilesOfFreeLocksStayOpenUpToALimit) {
  const auto open_files = [&] {
    std::map<std::string, int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ec;
      const auto leads = std::filesystem::read_symlink(entry.path(), ec).string();
      if (leads.starts_with(path() + "/")) ++found[leads];
    }
    return found;
  };
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  grant_and_release(store, "a");
  const auto kept = open_files();
  ASSERT_EQ(kept.count(file_of("a")), 1U);
  const auto claim = store.make("a");
  ASSERT_EQ(store.ask(claim).status, ClaimStatus::granted);
  EXPECT_EQ(open_files(), kept) << "the same one";
  store.release(claim);
  std::size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    grant_and_release(store, "n" + std::to_string(i));
    most = std::max(most, open_files().size());
  }
  EXPECT_GT(most, 32U);
  EXPECT_LE(most, 64U);
  std::filesystem::remove(file_of("n199"));
  EXPECT_TRUE(store.run_until([&] {
    return open_files().count(file_of("n199") + " (deleted)") == 0;
  })) << "the place on the disk is given back";
  store.run(store.backend->close(Store::soon()));
  EXPECT_TRUE(open_files().empty());
}

TEST_F(LocalBackendTest, ARemovedDirectoryIsALostLockAndIsMadeAgain) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  std::filesystem::remove_all(path());
  ASSERT_TRUE(store.run_until([&] { return !store.sink.gone.empty(); }, 10s));
  EXPECT_EQ(store.release(holder), ReleaseStatus::not_holder);
  EXPECT_GT(grant_and_release(store, "a"), 0U);
}

TEST_F(LocalBackendTest, AMovedDirectoryIsALostLock) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  std::filesystem::rename(path(), dir_ / "elsewhere");
  ASSERT_TRUE(store.run_until([&] { return !store.sink.gone.empty(); }, 10s));
  EXPECT_EQ(store.sink.gone[0].second, LossReason::removed);
  grant_and_release(store, "a");
  EXPECT_TRUE(std::filesystem::exists(file_of("a")));
}

TEST_F(LocalBackendTest, F74_AnUnrelatedOpenAndCloseChangesNothing) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto holder = store.make("a");
  ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
  ::close(::open(file_of("a").c_str(), O_RDWR | O_CLOEXEC));
  Store another(path());
  ASSERT_FALSE(another.connect().error);
  EXPECT_EQ(another.ask(another.make("a", false)).status, ClaimStatus::busy);
}

TEST_F(LocalBackendTest, DescriptorsAndWatchesAreGivenBack) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  grant_and_release(store, "a");
  const auto before = open_now();
  for (int i = 0; i < 50; ++i) {
    const auto holder = store.make("a");
    ASSERT_EQ(store.ask(holder).status, ClaimStatus::granted);
    const auto waiter = store.make("a");
    std::optional<ClaimAnswer> answer;
    store.start(store.acquire(waiter, Store::in(1ms)), answer);
    ASSERT_TRUE(store.run_until([&] { return answer.has_value(); }));
    EXPECT_GE(::fcntl(holder->inheritable_descriptor(), F_GETFD) & FD_CLOEXEC, 1);
    store.release(waiter);
    store.release(holder);
  }
  EXPECT_EQ(open_now(), before);
}

TEST_F(LocalBackendTest, EachFileHasTheModeOfTheOptionWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  {
    Store store(path(), "0664");
    EXPECT_FALSE(store.connect().error);
    EXPECT_EQ(store.ask(store.make("lock")).status, ClaimStatus::granted);
    ClaimRequest request;
    request.name = "semaphore";
    request.permits = 1;
    request.limit = 2;
    request.owner = Owner{make_uuid(store.env), "host", 1234, "test"};
    EXPECT_EQ(store.ask(store.backend->make_claim(std::move(request))).status,
              ClaimStatus::granted);
    store.run(store.backend->migration().set_note("note", std::nullopt, "text", Store::soon()));
    store.run(store.backend->ask("lock", 0, {}, Store::soon()));
  }
  ::umask(before);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    struct stat info {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0664U) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6) << "lock, line, slots, note, writers, mark";
}

TEST_F(LocalBackendTest, WhoSealsUnderAGateThatIsBeingWrittenWaitsForIt) {
  Store store(path());
  ASSERT_FALSE(store.connect().error);
  const auto made =
      store.run(store.backend->migration().set_note("gate/p", std::nullopt, "T1", Store::soon()));
  ASSERT_EQ(made.status, RecordStatus::done) << made.failure.text;
  ClaimRequest request;
  request.name = "a";
  request.owner = Owner{make_uuid(store.env), "host", 1234, "test"};
  request.gate = std::make_shared<const GateCheck>(GateCheck{"gate/p", "T1", {}});
  const auto claim = store.backend->make_claim(std::move(request));
  ASSERT_EQ(store.ask(claim).status, ClaimStatus::granted);

  const auto opened = open_directory(path(), true, store.env.wall_clock_ms());
  ASSERT_TRUE(opened.directory) << opened.failure.text;
  LockFile writers;
  ASSERT_TRUE(open_writers(*opened.directory, writers).ok());
  ASSERT_TRUE(writers.try_lock(kGuardByte).ok());
  std::optional<RecordAnswer> sealed;
  store.start(store.backend->migration().seal(claim, "record", Store::soon()), sealed);
  EXPECT_FALSE(store.run_until([&] { return sealed.has_value(); }, 200ms))
      << sealed->failure.text << ": the gate could have been turned below it";
  writers.unlock(kGuardByte);
  ASSERT_TRUE(store.run_until([&] { return sealed.has_value(); }));
  EXPECT_EQ(sealed->status, RecordStatus::done) << sealed->failure.text;
}

}  // namespace
}  // namespace dlock::local
