// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/peer.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <stop_token>
#include <thread>

#include "dlock/contract/harness.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::contract {
namespace {

using namespace std::chrono_literals;

void say(std::string line) {
  line += '\n';
  // One write: lines of the callback's thread and of ours do not mix.
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

/// Before any thread is made, which would take the signal otherwise.
int block_sigterm() {
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  return ::signalfd(-1, &ours, SFD_CLOEXEC);
}

/// Until the input ends, SIGTERM comes, or `lost` says so.
void wait_for_the_end(int signals, int lost) {
  for (;;) {
    std::array<pollfd, 3> all{{{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}, {lost, POLLIN, 0}}};
    if (::poll(all.data(), all.size(), -1) < 0) continue;
    if (all[1].revents != 0 || all[2].revents != 0) return;
    char byte = 0;
    if (all[0].revents != 0 && ::read(STDIN_FILENO, &byte, 1) <= 0) return;
  }
}

}  // namespace

std::string PeerKind::text() const {
  if (exports) return "export";
  if (!adopts.empty()) return adopts;
  if (permits == 0) return to_string(mode);
  return std::to_string(permits) + "/" + std::to_string(limit);
}

PeerKind PeerKind::parse(const std::string& text) {
  PeerKind kind;
  kind.exports = text == "export";
  if (text.starts_with("dlock-grant")) kind.adopts = text;
  if (kind.exports || !kind.adopts.empty()) return kind;
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    if (text == to_string(Mode::shared)) kind.mode = Mode::shared;
    return kind;
  }
  kind.permits = static_cast<std::uint32_t>(std::stoul(text.substr(0, slash)));
  kind.limit = static_cast<std::uint32_t>(std::stoul(text.substr(slash + 1)));
  return kind;
}

std::shared_ptr<DistributedLock> PeerKind::lock(LockManager& manager,
                                                const std::string& name) const {
  if (!adopts.empty()) return manager.exported(adopts);
  if (permits == 0) return manager.lock(name);
  return manager.semaphore(name, limit).permits(permits);
}

int run_peer(const std::string& url, const std::string& name, const PeerKind& kind) {
  const int signals = block_sigterm();
  const int lost = ::eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> was_lost = false;
  auto manager = LockManager::open(url, open_options());
  LockHandle handle;
  std::jthread waiter([&](const std::stop_token& stop) {
    error_code ec;
    handle = kind.lock(manager, name)->acquire({.wait = kWaitForever, .mode = kind.mode}, stop, ec);
    if (!handle) {
      if (ec != errc::cancelled) say(std::string(kPeerRefused) + ec.message());
      return;
    }
    say(std::string(kPeerHolds) + std::to_string(handle.token().value_or(0)));
    if (kind.exports) return say(std::string(kPeerExports) + handle.export_grant({.within = 60s}));
    handle.on_state([&](HandleState state, LossReason why) {
      if (state != HandleState::lost) return;
      say(std::string(kPeerLost) + to_string(why));
      was_lost = true;
      const std::uint64_t one = 1;
      if (::write(lost, &one, sizeof one) < 0) ::_exit(1);
    });
  });
  wait_for_the_end(signals, lost);
  waiter.request_stop();
  waiter.join();
  const int status = was_lost ? kPeerStatusLost : 0;
  if (handle) handle.release();
  return status;
}

}  // namespace dlock::contract
