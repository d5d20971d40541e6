// SPDX-License-Identifier: Apache-2.0
//
// The power goes: only what was synced is there after it. Every token that was given before is
// below those that come, and what was answered as written stands there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/rules/format.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/rules/tickets.hpp"
#include "backends/local/wire/directory.hpp"
#include "testkit/power_cut.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local {
namespace {

using test::Store;
using testkit::TempDir;
using namespace std::chrono_literals;

using Files = std::map<std::string, std::string>;

/// As if the ledger had been written before the machine went down: this boot is another one.
void age(std::string& bytes) {
  const std::vector<unsigned char> copy(bytes.begin(), bytes.end());
  const auto front = parse_front(copy);
  if (front.error != FrontError::none) return;
  auto ledger = front.ledger;
  ledger.boot = BootId{1, 2, 3};
  std::array<unsigned char, kHeaderSize> header{};
  encode_header(ledger, front.name.size(), front.version, header);
  std::copy(header.begin(), header.end(), bytes.begin());
}

class LocalPowerCut : public ::testing::Test {
 protected:
  void SetUp() override {
    make_old(folder_);
    ASSERT_FALSE(store_.connect().error);
  }
  void TearDown() override { testkit::fail_syncs(0); }

  /// A grant, given back; 0: refused.
  static std::uint64_t grant(Store& store, std::uint64_t min_token = 0) {
    const auto claim = store.make("a", true, min_token);
    const auto answer = store.ask(claim);
    EXPECT_EQ(answer.status, ClaimStatus::granted) << answer.failure.text;
    store.release(claim);
    return answer.token.value_or(0);
  }
  /// A folder that nobody waits for to settle.
  static void make_old(const std::string& folder) {
    const auto opened = open_directory(folder, true, 0);
    ASSERT_TRUE(opened.directory) << opened.failure.text;
  }
  Files cut() const { return testkit::left_by_power_cut(folder_); }
  /// The mark above which tokens would go on if the power went now; 0: there is no whole file.
  std::uint64_t mark() const {
    auto left = cut();
    const auto& text = left[file_name("a")];
    const std::vector<unsigned char> bytes(text.begin(), text.end());
    const auto front = parse_front(bytes);
    if (front.error != FrontError::none) return 0;
    return std::max({front.ledger.last, front.ledger.limit, front.ledger.raised});
  }
  /// What is left, in a folder of its own and after a boot.
  std::string boot(Files left, const std::string& place) const {
    const auto folder = dir_ / place;
    make_old(folder);
    for (auto& [name, bytes] : left) {
      age(bytes);
      testkit::write_file(folder / name, bytes);
    }
    return folder.string();
  }

  TempDir dir_{"dlock-local"};
  const std::string folder_ = (dir_ / "locks").string();
  Store store_{folder_};
};

// Far above the clock: a file that is made anew would begin below.
constexpr std::uint64_t kFar = 4'000'000'000'000'000;

TEST_F(LocalPowerCut, TokensGoOnAboveAllThatWereGranted) {
  std::uint64_t highest = grant(store_, kFar);
  const auto grant_around = [&](std::uint64_t ticket) {
    for (auto above = ticket - 3; above < ticket + 3; ++above) {
      const auto token = grant(store_, above);
      ASSERT_GT(token, highest);
      highest = token;
      ASSERT_GE(mark(), highest) << "it would be granted a second time";
    }
  };
  for (int round = 0; round < 3; ++round) {
    // The mark is raised here while there are tickets left, and there by who finds none.
    ASSERT_NO_FATAL_FAILURE(grant_around(mark() - kTicketsPerSync / 2));
    ASSERT_NO_FATAL_FAILURE(grant_around(mark()));
  }
  Store after(boot(cut(), "after"));
  ASSERT_FALSE(after.connect().error);
  EXPECT_GT(grant(after), highest);
}

// The mark of a ledger is raised before anybody confirms it: both count.
TEST_F(LocalPowerCut, TokensGoOnAboveAMarkThatNobodyConfirmed) {
  const auto first = grant(store_);
  const auto end = first - 1 + kTicketsPerSync;
  std::uint64_t highest = 0;
  while (highest <= end) highest = grant(store_, std::max(highest, end - 3));
  Store after(boot(cut(), "after"));
  ASSERT_FALSE(after.connect().error);
  EXPECT_GT(grant(after), highest);
}

TEST_F(LocalPowerCut, WithoutASyncNobodyGoesAboveTheMark) {
  const auto end = grant(store_) - 1 + kTicketsPerSync;
  EXPECT_EQ(grant(store_, end - 1), end);
  testkit::fail_syncs(EIO);
  const auto refused = store_.make("a");
  EXPECT_EQ(store_.ask(refused).status, ClaimStatus::unavailable);
  EXPECT_EQ(mark(), end);
  testkit::fail_syncs(0);
  EXPECT_EQ(grant(store_), end + 1);
  EXPECT_GT(mark(), end);
}

TEST_F(LocalPowerCut, ANewFileIsWholeOrNotThere) {
  const auto token = grant(store_);
  ASSERT_TRUE(cut().contains(file_name("a"))) << "its tokens would begin at the clock again";
  EXPECT_GE(mark(), token);
}

TEST_F(LocalPowerCut, RaisedTokensAndRecordsAreThere) {
  auto& migration = store_.backend->migration();
  const auto held = store_.make("a");
  ASSERT_EQ(store_.ask(held).status, ClaimStatus::granted);
  const auto floor = kFar;
  ASSERT_EQ(store_.run(migration.raise(held, floor, Store::soon())).status, RecordStatus::done);
  EXPECT_GE(mark(), floor);
  const auto raised = cut();

  const std::string record(5'000, 'r');
  ASSERT_EQ(store_.run(migration.seal(held, record, Store::soon())).status, RecordStatus::done);
  const auto sealed = cut();
  const std::string next = "another";
  ASSERT_EQ(store_.run(migration.set_record("a", record, next, 0, Store::soon())).status,
            RecordStatus::done);
  const auto record_in = [&](Files left, const std::string& folder) {
    Store after(boot(std::move(left), folder));
    EXPECT_FALSE(after.connect().error);
    return after.run(after.backend->migration().record("a", Store::soon())).found;
  };
  EXPECT_EQ(record_in(raised, "raised"), std::nullopt);
  EXPECT_EQ(record_in(sealed, "sealed"), record);
  EXPECT_EQ(record_in(cut(), "replaced"), next);
  Store after((dir_ / "raised").string());
  ASSERT_FALSE(after.connect().error);
  EXPECT_GT(grant(after), floor);
}

TEST_F(LocalPowerCut, AnOpenedLockIsOpenAboveItsFloor) {
  auto& migration = store_.backend->migration();
  const auto held = store_.make("a");
  ASSERT_EQ(store_.ask(held).status, ClaimStatus::granted);
  ASSERT_EQ(store_.run(migration.seal(held, "record", Store::soon())).status, RecordStatus::done);
  const auto floor = kFar;
  ASSERT_EQ(
      store_.run(migration.set_record("a", "record", std::nullopt, floor, Store::soon())).status,
      RecordStatus::done);
  Store after(boot(cut(), "after"));
  ASSERT_FALSE(after.connect().error);
  EXPECT_GT(grant(after), floor);
}

TEST_F(LocalPowerCut, NotesAreThere) {
  auto& migration = store_.backend->migration();
  const auto write = [&](const char* key, const char* from, const char* to) {
    const auto answer = store_.run(migration.set_note(key, from, to, Store::soon()));
    ASSERT_EQ(answer.status, RecordStatus::done) << answer.failure.text;
  };
  const auto left_of = [&](const char* key) {
    auto left = cut();
    const auto found = left.find(note_file_name(key));
    return found == left.end() ? "(none)" : found->second;
  };
  write("plan/p", "", "first");
  EXPECT_EQ(left_of("plan/p"), "first");
  write("plan/p", "first", "second");
  EXPECT_EQ(left_of("plan/p"), "second");
  write("gate/p", "", "T1");
  write("plan/p", "second", "");
  EXPECT_EQ(left_of("plan/p"), "(none)") << "it was taken away";

  Store after(boot(cut(), "after"));
  ASSERT_FALSE(after.connect().error);
  auto& then = after.backend->migration();
  EXPECT_EQ(after.run(then.note("gate/p", Store::soon())).found, "T1");
  EXPECT_EQ(after.run(then.note("plan/p", Store::soon())).found, std::nullopt);
}

}  // namespace
}  // namespace dlock::local
