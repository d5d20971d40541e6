// SPDX-License-Identifier: Apache-2.0
//
// A program that runs short of memory or of threads at one point of a lock's life.
//
//   starved URL PHASE cpp|all|thread 0 NAME    prints `count N`: the points of the phase
//   starved URL PHASE cpp|all|thread N NAME    prints `ok HOW` or `bad WHY`, unless it is ended
//   starved URL free NAME...                   prints `ok`, or `bad` and the names that are held
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dlock/dlock.hpp"
#include "testkit/await.hpp"
#include "testkit/failing_memory.hpp"
#include "testkit/no_threads.hpp"

namespace dlock::starved {
namespace {

using namespace std::chrono_literals;
using testkit::Clock;
using testkit::eventually;
using testkit::Spared;
using testkit::within;

/// For each call, in addition to its own wait: the times of the URL, and a busy machine.
constexpr auto kGrace = 8s;

enum class Kind { cpp, all, thread };

LockManager open(const std::string& url) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::open(url, std::move(options));
}

/// One point: its own manager, and one lock whose name no other point has.
struct Trial {
  const std::string url;
  const std::string name;
  std::optional<LockManager> locks{};
  std::optional<LockManager> rival{};
  LockHandle handle{};
  std::thread releasing{};
  std::atomic<bool> waits{false};
  std::string outcome{};
  std::string wrong{};

  void expect(bool good, const std::string& what) {
    if (!good) wrong += what + "; ";
  }
  LockManager& a_rival() {
    if (!rival) rival = open(url);
    return *rival;
  }
  /// Before the trial's own threads exist: nothing is missing for those of the rival.
  void bring_rival() {
    (void)a_rival().lock(name + "-first")->acquire({.wait = 5s});
    testkit::spare_present_threads();
  }
  /// The caller's thread: std::bad_alloc, or an error for what else is missing.
  template <class Work>
  void attempt(const char* what, Work work, Clock::duration wait = {}) {
    const auto start = Clock::now();
    try {
      work();
      const Spared spared;
      outcome += fmt::format("{}; ", what);
    } catch (const std::bad_alloc&) {
      const Spared spared;
      outcome += "bad_alloc; ";
    } catch (const LockError& error) {
      const Spared spared;
      const auto& ec = error.code();
      outcome += ec.message() + "; ";
      expect(ec == errc::unavailable || ec == errc::lock_lost || ec == errc::not_supported ||
                 ec == errc::timed_out,
             fmt::format("{}: {}", what, error.what()));
    }
    const Spared spared;
    expect(Clock::now() - start < wait + kGrace, fmt::format("{} took too long", what));
  }
  void acquire(const std::shared_ptr<DistributedLock>& lock) {
    handle = lock->acquire({.wait = 4s});
  }
};

struct Phase {
  const char* name;
  std::function<void(Trial&)> prepare;
  std::function<void(Trial&)> act;
  std::function<void(Trial&)> settle;
};

void nothing(Trial&) {}
void open_it(Trial& trial) { trial.locks = open(trial.url); }

void warm(Trial& trial) {
  open_it(trial);
  trial.locks->connect();
  // What is made once, and what belongs to the thread.
  (void)trial.locks->lock(trial.name + "-warm")->acquire({.wait = 5s});
}

void hold(Trial& trial) {
  warm(trial);
  trial.handle = trial.locks->lock(trial.name)->acquire({.wait = 5s});
}

/// The lock stays with the process.
void keep(Trial& trial) {
  const bool has_options = trial.url.find('?') != std::string::npos;
  trial.locks = open(trial.url + (has_options ? "&" : "?") + "cache=2s");
  for (int i = 0; i < 2; ++i) (void)trial.locks->lock(trial.name)->acquire({.wait = 5s});
}

/// The rival has used what the libraries below make once in a process.
void rival_first(Trial& trial) { trial.bring_rival(); }

void first(Trial& trial) {
  trial.attempt("open", [&] { open_it(trial); });
  if (!trial.locks) return;
  trial.attempt("acquire", [&] {
    error_code ec;
    trial.handle = trial.locks->lock(trial.name)->acquire({.wait = 4s}, {}, ec);
    if (ec) throw LockError(ec, {});
  });
}

void acquire(Trial& trial) {
  trial.attempt(
      "acquire", [&] { trial.acquire(trial.locks->lock(trial.name)); }, 4s);
}

void acquire_several(Trial& trial) {
  const auto both = [&] { return trial.locks->lock_all({trial.name, trial.name + "-other"}); };
  trial.attempt(
      "acquire", [&] { trial.acquire(both()); }, 4s);
}

void rival_holds(Trial& trial) {
  trial.bring_rival();
  warm(trial);
  trial.releasing = std::thread(
      [&trial, held = trial.a_rival().lock(trial.name)->acquire({.wait = 5s})]() mutable {
        const Spared spared;
        trial.waits.wait(false);
        // No event to wait for: not every store names its waiters. If this is too short, the lock
        // is acquired without a wait.
        std::this_thread::sleep_for(60ms);
        held.release();
      });
}

void wait_for_rival(Trial& trial) {
  trial.waits = true;
  trial.waits.notify_all();
  acquire(trial);
  trial.releasing.join();
}

bool is_believed(const LockHandle& handle) {
  return handle.state() == HandleState::held || handle.state() == HandleState::suspect;
}

/// Returns after a renewal, or when the lock is lost.
void await_renewal(const LockHandle& handle) {
  const Spared spared;
  auto lowest = handle.remaining().value_or(0ns);
  eventually(within(5s), [&] {
    const auto now = handle.remaining().value_or(0ns);
    if (now > lowest + 50ms || now == 0ns || !is_believed(handle)) return true;
    lowest = std::min(lowest, now);
    return false;
  });
}

void renew(Trial& trial) {
  if (trial.handle.remaining()) await_renewal(trial.handle);
}

/// The lock is renewed, or its loss is reported.
void expect_held_or_told(Trial& trial) {
  if (!trial.handle) return;
  const auto stop = trial.handle.stop_token();
  if (testkit::memory_has_failed()) renew(trial);
  if (is_believed(trial.handle)) return;
  trial.outcome += fmt::format("lost ({}); ", to_string(trial.handle.loss_reason()));
  trial.expect(eventually(within(500ms), [&] { return stop.stop_requested(); }), "no stop");
}

void look(Trial& trial) {
  trial.attempt("look", [&] {
    trial.handle.on_state([](HandleState, LossReason) {});
    trial.handle.check();
    trial.locks->status(trial.name);
  });
}

void release(Trial& trial) {
  trial.attempt("release", [&] {
    if (const auto ec = trial.handle.release()) throw LockError(ec, {});
  });
}

void drop(Trial& trial) {
  { const auto dropped = std::move(trial.handle); }
  std::this_thread::sleep_for(20ms);
}

void close(Trial& trial) {
  trial.attempt("close", [&] { trial.locks->close(); });
}

void expect_closed(Trial& trial) {
  trial.expect(!is_believed(trial.handle), "still believed after close");
  trial.expect(trial.handle.stop_token().stop_requested(), "no stop after close");
}

void export_it(Trial& trial) {
  trial.attempt("export", [&] { (void)trial.handle.export_grant({.within = 300ms}); });
}

void lead(Trial& trial) {
  std::atomic<bool> has_ended = false;
  trial.attempt("lead", [&] {
    LeaderOptions options;
    options.times.retry = 10ms;
    options.on_event = [&has_ended](const LeaderEvent& event) {
      if (event.kind == LeaderEvent::Kind::gave_up) has_ended = true;
    };
    Leader leader(*trial.locks, trial.name, {}, options);
    leader.on_leader_changed([](const std::optional<Owner>&) {});
    leader.campaign();
    {
      const Spared spared;
      trial.expect(eventually(within(kGrace), [&] { return has_ended || leader.is_leader(); }),
                   "neither leads nor gives up");
    }
    leader.resign();
  });
}

/// It has run, or is due still. Memcached keeps no runs.
void run_once(Trial& trial) {
  bool has_run = false;
  RunRefusal why;
  trial.attempt("run", [&] {
    Schedule schedule(*trial.locks, trial.name, {.at_most_for = 30s});
    schedule.run([&has_run](const std::stop_token&) { has_run = true; }, &why);
    // What a try has left behind holds the lock for a moment.
    const bool is_busy = why.reason == RunRefusal::Reason::busy;
    trial.expect(has_run || is_busy, fmt::format("it was due ({})", to_string(why.reason)));
  });
}

/// An operator breaks the lock.
void lose(Trial& trial) {
  const auto stop = trial.handle.stop_token();
  const Spared spared;
  trial.a_rival().evict(trial.name, trial.handle.token().value(), {.at_once = true});
  trial.expect(eventually(within(4500ms), [&] { return stop.stop_requested(); }), "no stop");
  trial.expect(!is_believed(trial.handle), "still believed");
}

void hold_beside_rival(Trial& trial) {
  trial.bring_rival();
  hold(trial);
}

void open_beside_rival(Trial& trial) {
  trial.bring_rival();
  open_it(trial);
}

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {
      {"cold", nothing, first, nothing},
      {"first", rival_first, first, nothing},
      {"connect", open_beside_rival, acquire, nothing},
      {"acquire", warm, acquire, expect_held_or_told},
      {"several", warm, acquire_several, expect_held_or_told},
      {"cached", keep, acquire, expect_held_or_told},
      {"wait", rival_holds, wait_for_rival, expect_held_or_told},
      {"renew", hold, renew, expect_held_or_told},
      {"look", hold, look, nothing},
      {"export", hold, export_it, expect_held_or_told},
      {"release", hold, release, nothing},
      {"drop", hold, drop, nothing},
      {"lead", warm, lead, nothing},
      {"run", warm, run_once, nothing},
      {"lose", hold_beside_rival, lose, nothing},
      {"close", hold, close, expect_closed},
  };
  return all;
}

/// The same manager, or another if it could not be opened.
void expect_works_again(Trial& trial) {
  if (!trial.locks) open_it(trial);
  error_code ec;
  const bool works = eventually(within(12s), [&] {
    return static_cast<bool>(
        trial.locks->lock(trial.name + "-again")->acquire({.wait = 1s}, {}, ec));
  });
  trial.expect(works, "does not work again: " + ec.message());
}

bool is_free(LockManager& locks, const std::string& name) {
  error_code ec;
  return static_cast<bool>(locks.lock(name)->acquire({.wait = 6s}, {}, ec));
}

/// `n`: the allocation, or the thread, that fails. Returns how many there were.
std::uint64_t run(Trial& trial, const Phase& phase, Kind kind, std::uint64_t n) {
  phase.prepare(trial);
  if (std::getenv("STARVED_SHOW") != nullptr) testkit::show_failures();  // NOLINT
  const auto before = testkit::threads_asked_for();
  if (kind == Kind::thread) {
    testkit::refuse_thread(n);
  } else {
    testkit::arm_memory(kind == Kind::cpp ? testkit::Memory::cpp : testkit::Memory::all, n);
  }
  phase.act(trial);
  std::this_thread::sleep_for(10ms);
  testkit::refuse_thread(0);
  const auto allocations = testkit::disarm_memory();
  const auto threads = testkit::threads_asked_for() - before;
  phase.settle(trial);
  if (std::string(phase.name) != "close") expect_works_again(trial);
  trial.handle = {};
  trial.attempt("close", [&] { trial.locks->close(); });
  trial.locks.reset();
  for (const auto& name : {trial.name, trial.name + "-other"}) {
    trial.expect(is_free(trial.a_rival(), name), name + " is still held");
  }
  return kind == Kind::thread ? threads : allocations;
}

/// The names in `words` from the third on, of processes that have ended.
int check_free(const std::vector<std::string>& words) {
  auto locks = open(words[0]);
  std::string held;
  for (std::size_t i = 2; i < words.size(); ++i) {
    // A busy machine may not open the store, or answer, in time.
    const bool free = eventually(within(30s), [&] { return is_free(locks, words[i]); });
    if (!free) held += words[i] + " ";
  }
  fmt::print("{}\n", held.empty() ? "ok" : "bad " + held);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 2 && words[1] == "free") return check_free(words);
  if (words.size() != 5) return 2;
  ::alarm(60);
  for (const auto& phase : phases()) {
    if (phase.name != words[1]) continue;
    const auto kind = words[2] == "cpp" ? Kind::cpp : words[2] == "all" ? Kind::all : Kind::thread;
    const auto n = std::stoull(words[3]);
    Trial trial{words[0], words[4]};
    const auto count = run(trial, phase, kind, n);
    if (n == 0) {
      fmt::print("count {}\n", count);
    } else if (trial.wrong.empty()) {
      fmt::print("ok {}\n", trial.outcome);
    } else {
      fmt::print("bad {}({})\n", trial.wrong, trial.outcome);
    }
    return 0;
  }
  return 2;
}

}  // namespace dlock::starved

int main(int argc, char** argv) { return dlock::starved::main(argc, argv); }
