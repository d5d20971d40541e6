// SPDX-License-Identifier: Apache-2.0
//
// The fixture of the contract suite, and its peers: somebody else who wants the same lock, in a
// process of his own where the store has processes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/contract/harness.hpp"
#include "dlock/dlock.hpp"
#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "tests/contract/peer.hpp"

namespace dlock::contract {

using namespace std::chrono_literals;  // NOLINT: a header of tests only
using testkit::eventually;
using testkit::patience;
using testkit::within;

/// Above all tokens that a store gives in a test.
inline constexpr std::uint64_t kFar = 1'000'000'000'000;

/// Acquires as soon as it is made, and holds until told otherwise.
class Peer {
 public:
  virtual ~Peer() = default;
  /// Waits until it holds the lock; its token. nullopt at the deadline.
  virtual std::optional<std::uint64_t> wait_held(testkit::Deadline deadline) = 0;
  virtual bool is_held() = 0;
  /// Gives the lock back, or stops waiting for it; returns when that is done.
  virtual void release() = 0;
  /// Waits until it was told that the lock is lost; the reason.
  virtual std::optional<std::string> wait_lost(testkit::Deadline deadline) = 0;
};

/// Those that other processes reach.
std::vector<Store> stores_with_processes();
/// Those behind a link that can break.
std::vector<Store> stores_with_a_link();

/// This program once more, as peer.hpp has it.
class ProcessPeer final : public Peer {
 public:
  ProcessPeer(const std::string& url, const std::string& name, Mode mode = Mode::exclusive);
  ProcessPeer(const std::string& url, const std::string& name, const PeerKind& kind);
  std::optional<std::uint64_t> wait_held(testkit::Deadline deadline) override;
  bool is_held() override { return wait_held(within(0s)).has_value(); }
  void release() override;
  std::optional<std::string> wait_lost(testkit::Deadline deadline) override;
  /// The text of the grant that it has exported.
  std::optional<std::string> wait_exported(testkit::Deadline deadline);
  /// Whether it has the lock, or was refused it.
  std::optional<bool> wait_decided(testkit::Deadline deadline);
  testkit::Process& process() { return process_; }

 private:
  /// What follows `word` in the next line that begins with it.
  std::optional<std::string> read(std::string_view word, testkit::Deadline deadline);

  testkit::Process process_;
  std::optional<std::uint64_t> token_;
};

/// The parameter is the store.
class Contract : public ::testing::TestWithParam<Store> {
 protected:
  void SetUp() override;

  Harness& harness() const { return GetParam().harness(); }
  const std::string& url() const { return url_; }
  /// A manager of its own on this test's store.
  LockManager open() const;
  /// The manager that the test looks at the store with.
  LockManager& observer() { return *observer_; }
  const Capabilities& capabilities() const { return capabilities_; }

  /// Somebody else: a process, or a manager of its own.
  std::unique_ptr<Peer> peer(const std::string& name, Mode mode = Mode::exclusive) const;
  std::unique_ptr<ProcessPeer> process_peer(const std::string& name,
                                            Mode mode = Mode::exclusive) const;
  /// Somebody else who wants so many permits of that semaphore.
  std::unique_ptr<Peer> permits_peer(const std::string& name, std::uint32_t permits,
                                     std::uint32_t limit) const;

  /// How many wait. On a store that does not show them: how many ever began to, at least.
  std::size_t waiting(const std::string& name);
  /// Soon; on such a store, "no longer" cannot be seen, and is true.
  bool waiters_become(const std::string& name, std::size_t count);
  /// Nobody holds it and nobody waits, soon.
  bool becomes_free(const std::string& name);

 private:
  std::string url_;
  std::optional<LockManager> observer_;
  Capabilities capabilities_;
};

/// The error that `call` throws; a clear one if it throws none.
error_code error_of(const std::function<void()>& call);

std::string store_name(const ::testing::TestParamInfo<Store>& info);

/// Runs the suite on every store.
#define DLOCK_CONTRACT(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(Stores, suite, ::testing::ValuesIn(::dlock::contract::stores()), \
                           ::dlock::contract::store_name)
/// On every store that other processes reach.
#define DLOCK_CONTRACT_OF_PROCESSES(suite)                                                  \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                                     \
  INSTANTIATE_TEST_SUITE_P(Stores, suite,                                                   \
                           ::testing::ValuesIn(::dlock::contract::stores_with_processes()), \
                           ::dlock::contract::store_name)

/// On every store behind a link that can break.
#define DLOCK_CONTRACT_OF_LINKS(suite)                                                   \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                                  \
  INSTANTIATE_TEST_SUITE_P(Stores, suite,                                                \
                           ::testing::ValuesIn(::dlock::contract::stores_with_a_link()), \
                           ::dlock::contract::store_name)

/// No data races hide in a name: PrintTo would print bytes otherwise.
inline void PrintTo(const Store& store, std::ostream* out) { *out << store.name; }

}  // namespace dlock::contract
