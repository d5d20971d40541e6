// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/worker.hpp"

#include <fmt/format.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "tests/soak/guarded.hpp"
#include "tests/soak/log.hpp"

namespace dlock::soak {
namespace {

using namespace std::chrono_literals;

/// How often a holder looks at its deadline.
constexpr auto kLook = 4ms;

/// Wakes up all the time, and writes down when it could not: what the machine itself is late by.
void watch_the_machine(const LogWriter& log, const std::stop_token& stop) {
  constexpr auto kBeat = 2ms;
  constexpr auto kLate = 3ms;
  while (!stop.stop_requested()) {
    const auto due = BoottimeClock::now() + kBeat;
    std::this_thread::sleep_for(kBeat);
    const auto now = BoottimeClock::now();
    if (now - due > kLate) log.write({due, Note::held_up, 0, 0, 0, now, {}});
  }
}

/// Shared by the actor that holds and the callback that tells of the loss.
struct Telling {
  std::mutex mutex;
  bool told = false;
  bool given_back = false;
};

class Actor {
 public:
  Actor(const WorkerOptions& options, LockManager& locks, LogWriter& log,
        std::atomic<std::uint64_t>& grants, int number)
      : options_(options),
        locks_(locks),
        log_(log),
        grants_(grants),
        number_(number),
        dice_(options.seed * 31 + static_cast<unsigned>(number)) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto name = choose();
      if (auto handle = acquire(name, stop)) hold(std::move(handle), name, stop);
      std::this_thread::sleep_for(1ms * pick(10));
    }
  }

 private:
  std::string choose() {
    constexpr auto kAge = 100ms;
    constexpr int kOldest = 300;
    if (!options_.makes_names || pick(3) > 0) return lock_name(pick(options_.names));
    const auto age = pick(2) == 0 ? 0 : pick(kOldest);
    return fmt::format("soak-new-{}", BoottimeClock::now().time_since_epoch() / kAge - age);
  }
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(dice_); }

  void note(Note what, std::uint64_t grant = 0, const std::string& name = {},
            TimePoint at = BoottimeClock::now(), TimePoint until = kNever,
            std::uint64_t token = 0) const {
    log_.write({at, what, number_, grant, token, until, name});
  }

  LockHandle acquire(const std::string& name, const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kWaits[] = {0ms, 200ms, 2s, 10s};
    note(Note::wanted, 0, name);
    error_code ec;
    AcquireOptions options;
    Diagnostics why;
    options.diagnostics = &why;
    options.wait = kWaits[pick(4)];
    auto handle = locks_.lock(name)->acquire(options, stop, ec);
    if (handle) return handle;
    note(Note::given_up, 0, name);
    note(Note::refused, 0,
         fmt::format("{} in {} ms: {}: {}", name, options.wait->count(), ec.message(),
                     why.server_text));
    if (!options_.config.empty() &&
        (ec == errc::moving || ec == errc::config_unsafe || ec == errc::no_gate)) {
      note(Note::turned_away, 0, fmt::format("{}: {}", name, why.server_text));
      std::this_thread::sleep_for(50ms);
      return {};
    }
    if (ec != errc::timed_out && ec != errc::unavailable && ec != errc::cancelled) {
      note(Note::odd, 0, fmt::format("acquire of {}: {}", name, ec.message()));
    }
    if (ec == errc::unavailable) std::this_thread::sleep_for(50ms);
    return {};
  }

  /// When the local deadline is, as seen from outside; the clock is read on both sides of it.
  static TimePoint deadline_of(const LockHandle& handle) {
    for (;;) {
      const auto before = BoottimeClock::now();
      const auto left = handle.remaining();
      if (!left) return kNever;
      if (BoottimeClock::now() - before < 200us) return before + *left;
    }
  }

  std::chrono::milliseconds duration() {
    const int kind = pick(100);
    if (kind < 80) return 1ms * pick(20);
    if (kind < 95) return 1ms * pick(200);
    return options_.lease / 2 + 1ms * pick(static_cast<int>(options_.lease.count()));
  }

  void hold(LockHandle handle, const std::string& name, const std::stop_token& stop) {
    const auto id = ++grants_;
    auto until = deadline_of(handle);
    auto looked = BoottimeClock::now();
    const auto token = handle.token().value_or(0);
    note(Note::granted, id, name, looked, until, token);
    if (!options_.config.empty()) note(Note::in_store, id, handle.store());
    const auto telling = std::make_shared<Telling>();
    handle.on_state([this, telling, id](HandleState state, LossReason) {
      if (state != HandleState::lost) return;
      const auto now = BoottimeClock::now();
      const std::lock_guard guard(telling->mutex);
      telling->told = true;
      if (!telling->given_back) note(Note::told_lost, id, {}, now);
    });
    const GuardedFile guarded(options_.folder, name);
    guarded.write(options_.number, id, token);
    const auto end = BoottimeClock::now() + duration();
    while (BoottimeClock::now() < end && !stop.stop_requested()) {
      std::this_thread::sleep_for(kLook);
      const auto now = BoottimeClock::now();
      const auto state = handle.state();
      if (state == HandleState::lost) break;
      const auto moved = deadline_of(handle);
      if (handle.state() == HandleState::lost) break;
      if (until != kNever && moved > until + 50us) {
        // Some time since the last look; taken as if it had been right then.
        until = moved;
        note(Note::extended, id, {}, looked, until);
      } else if (now >= until) {
        note(Note::odd, id, fmt::format("{} is said to be held after its deadline", name));
      }
      looked = now;
    }
    guarded.write(options_.number, id, token);  // the register decides
    give_back(std::move(handle), *telling, id, name);
  }

  void give_back(LockHandle handle, Telling& telling, std::uint64_t id, const std::string& name) {
    if (handle.state() == HandleState::lost) {
      // Told by a call; the event has to come, too.
      const auto give_up = BoottimeClock::now() + 10s;
      for (;;) {
        {
          const std::lock_guard guard(telling.mutex);
          if (telling.told) break;
        }
        if (BoottimeClock::now() > give_up) {
          note(Note::odd, id, fmt::format("nobody is told that {} is lost", name));
          break;
        }
        std::this_thread::sleep_for(1ms);
      }
    } else {
      const std::lock_guard guard(telling.mutex);
      telling.given_back = true;
      if (!telling.told) note(Note::releasing, id);
    }
    handle.release();
  }

  const WorkerOptions& options_;
  LockManager& locks_;
  LogWriter& log_;
  std::atomic<std::uint64_t>& grants_;
  const int number_;
  std::mt19937 dice_;
};

}  // namespace

std::string lock_name(int index) { return fmt::format("soak-{}", index); }

std::string log_file(const std::string& folder, int worker) {
  return fmt::format("{}/worker-{}.log", folder, worker);
}

int work(const WorkerOptions& options) {
  LogWriter log(log_file(options.folder, options.number));
  std::atomic<std::uint64_t> grants = 0;
  auto open = OpenOptions::built_in();
  open.log = [](LogLevel, std::string_view) {};
  auto locks = options.config.empty() ? LockManager::open(options.url, std::move(open))
                                      : LockManager::from_file(options.config, std::move(open));
  std::vector<Actor> actors;
  actors.reserve(kActors);
  for (int i = 0; i < kActors; ++i) actors.emplace_back(options, locks, log, grants, i);
  std::vector<std::jthread> threads;
  for (auto& actor : actors) {
    threads.emplace_back([&actor](const std::stop_token& stop) { actor.run(stop); });
  }
  threads.emplace_back([&log](const std::stop_token& stop) { watch_the_machine(log, stop); });
  for (std::string line; std::getline(std::cin, line);) {
  }
  for (auto& thread : threads) thread.request_stop();
  threads.clear();
  return 0;
}

}  // namespace dlock::soak
