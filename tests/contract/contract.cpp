// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/contract.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "tests/contract/peer.hpp"

namespace dlock::contract {
namespace {

testkit::ProcessOptions peer_command(const std::string& url, const std::string& name,
                                     const PeerKind& kind) {
  testkit::ProcessOptions options;
  options.argv = {"/proc/self/exe", kPeerFlag, url, name, kind.text()};
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE", "DLOCK_TOKEN", "DLOCK_NAME"};
  return options;
}

/// For a store without processes: a manager and a thread of its own.
class ThreadPeer final : public Peer {
 public:
  ThreadPeer(const std::string& url, const std::string& name, const PeerKind& kind)
      : manager_(LockManager::open(url, open_options())),
        thread_([this, lock = kind.lock(manager_, name),
                 mode = kind.mode](const std::stop_token& stop) {
          error_code ec;
          auto handle = lock->acquire({.wait = kWaitForever, .mode = mode}, stop, ec);
          const std::lock_guard guard(mutex_);
          handle_ = std::move(handle);
          changed_.notify_all();
        }) {}
  ~ThreadPeer() override { release(); }

  std::optional<std::uint64_t> wait_held(testkit::Deadline deadline) override {
    std::unique_lock guard(mutex_);
    changed_.wait_until(guard, deadline, [this] { return static_cast<bool>(handle_); });
    return handle_ ? handle_.token() : std::nullopt;
  }
  bool is_held() override { return wait_held(within(0s)).has_value(); }
  void release() override {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    if (handle_) handle_.release();
  }
  std::optional<std::string> wait_lost(testkit::Deadline deadline) override {
    if (!eventually(deadline, [this] { return handle_.state() == HandleState::lost; })) return {};
    return to_string(handle_.loss_reason());
  }

 private:
  LockManager manager_;
  std::mutex mutex_;
  std::condition_variable changed_;
  LockHandle handle_;
  std::jthread thread_;
};

}  // namespace

ProcessPeer::ProcessPeer(const std::string& url, const std::string& name, Mode mode)
    : ProcessPeer(url, name, PeerKind{mode}) {}

ProcessPeer::ProcessPeer(const std::string& url, const std::string& name, const PeerKind& kind)
    : process_(peer_command(url, name, kind)) {}

std::optional<std::string> ProcessPeer::read(std::string_view word, testkit::Deadline deadline) {
  while (const auto line = process_.read_line(deadline)) {
    if (line->starts_with(word)) return line->substr(word.size());
  }
  return {};
}

std::optional<std::uint64_t> ProcessPeer::wait_held(testkit::Deadline deadline) {
  if (token_) return token_;
  if (const auto token = read(kPeerHolds, deadline)) token_ = std::stoull(*token);
  return token_;
}

void ProcessPeer::release() {
  process_.close_stdin();
  EXPECT_TRUE(process_.wait(patience())) << "the peer did not end";
}

std::optional<std::string> ProcessPeer::wait_exported(testkit::Deadline deadline) {
  if (!wait_held(deadline)) return {};
  return read(kPeerExports, deadline);
}

std::optional<bool> ProcessPeer::wait_decided(testkit::Deadline deadline) {
  const auto line = process_.read_line(deadline);
  if (!line) return {};
  return line->starts_with(kPeerHolds);
}

std::optional<std::string> ProcessPeer::wait_lost(testkit::Deadline deadline) {
  return read(kPeerLost, deadline);
}

void Contract::SetUp() {
  url_ = harness().fresh_url();
  observer_.emplace(open());
  const auto reports = observer_->inspect();
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_TRUE(reports[0].reached) << reports[0].message;
  capabilities_ = reports[0].capabilities.value();
}

LockManager Contract::open() const { return LockManager::open(url_, open_options()); }

std::unique_ptr<Peer> Contract::peer(const std::string& name, Mode mode) const {
  if (harness().has_processes()) return process_peer(name, mode);
  return std::make_unique<ThreadPeer>(url_, name, PeerKind{mode});
}

std::unique_ptr<Peer> Contract::permits_peer(const std::string& name, std::uint32_t permits,
                                             std::uint32_t limit) const {
  const PeerKind kind{Mode::exclusive, permits, limit};
  if (harness().has_processes()) return std::make_unique<ProcessPeer>(url_, name, kind);
  return std::make_unique<ThreadPeer>(url_, name, kind);
}

std::unique_ptr<ProcessPeer> Contract::process_peer(const std::string& name, Mode mode) const {
  return std::make_unique<ProcessPeer>(url_, name, mode);
}

std::size_t Contract::waiting(const std::string& name) {
  if (harness().shows_waiters()) return observer().status(name).waiting.size();
  EXPECT_TRUE(observer().status(name).waiting.empty());
  return harness().asked_in_vain(name);
}

bool Contract::waiters_become(const std::string& name, std::size_t count) {
  // A long queue takes the store a while to tell: asked again at once, it would do nothing else.
  auto next = testkit::Clock::now();
  return eventually(patience(), [&] {
    const auto started = testkit::Clock::now();
    if (started < next) return false;
    const auto now = waiting(name);
    const bool all = harness().shows_waiters() ? now == count : now >= count;
    next = testkit::Clock::now() + 5 * (testkit::Clock::now() - started);
    return all;
  });
}

bool Contract::becomes_free(const std::string& name) {
  return eventually(patience(), [&] {
    const auto status = observer().status(name);
    return !status.held && status.waiting.empty();
  });
}

error_code error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const LockError& error) {
    return error.code();
  }
  return {};
}

std::string store_name(const ::testing::TestParamInfo<Store>& info) { return info.param.name; }

}  // namespace dlock::contract
