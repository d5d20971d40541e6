// SPDX-License-Identifier: Apache-2.0
//
// A program that runs short of memory or of threads at a chosen point of a lock's life, and says
// what came of it. What it finds wrong it says and goes on; what ends it, the test sees.
//
//   starved URL PHASE cpp|all|thread count
//   starved URL PHASE cpp|all|thread FIRST STRIDE LAST
//
// Says `count N`: so many points there are; or of each point `at N` before it and `ok N how`, or
// `bad N why`, after it.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
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
using testkit::within;

/// Of closing and of each call, beyond what was asked for: the URL's times, and a busy machine.
constexpr auto kGrace = 8s;

enum class Kind { cpp, all, thread };

void say(const std::string& line) {
  const auto text = line + "\n";
  [[maybe_unused]] const auto written = ::write(1, text.data(), text.size());
}

OpenOptions quiet() {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// What fails, and when.
class Shortage {
 public:
  Shortage(Kind kind, std::uint64_t n) : kind_(kind) {
    if (kind_ == Kind::thread) {
      asked_before_ = testkit::threads_asked_for();
      testkit::refuse_thread(n);
    } else {
      testkit::arm_memory(kind_ == Kind::cpp ? testkit::Memory::cpp : testkit::Memory::all, n);
    }
  }
  ~Shortage() { end(); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

  /// What went on in the background meanwhile counts, too.
  std::uint64_t end() {
    if (std::exchange(ended_, true)) return count_;
    if (kind_ == Kind::thread) {
      testkit::refuse_thread(0);
      count_ = testkit::threads_asked_for() - asked_before_;
    } else {
      count_ = testkit::disarm_memory();
    }
    return count_;
  }

 private:
  const Kind kind_;
  std::uint64_t asked_before_ = 0;
  std::uint64_t count_ = 0;
  bool ended_ = false;
};

/// One point: a manager of its own, one lock of a name of its own, and a rival for it.
struct Trial {
  LockManager& rival;
  const std::string url;
  const std::string name;
  std::optional<LockManager> locks{};
  LockHandle handle{};
  std::optional<LockHandle> rivals{};
  std::thread releasing{};  ///< the rival's, made before anything is short
  std::atomic<bool> waits{false};
  std::string outcome{};
  std::vector<std::string> wrong{};
  Clock::time_point told{};

  void expect(bool good, const std::string& what) {
    if (!good) wrong.push_back(what);
  }
  void open() { locks.emplace(LockManager::open(url, quiet())); }

  void acquire(const std::string& which, std::chrono::milliseconds wait, LockHandle& into) {
    const auto start = Clock::now();
    error_code ec;
    std::shared_ptr<DistributedLock> lock;
    try {
      lock = locks->lock(which);
    } catch (const std::bad_alloc&) {
      const testkit::Spared spared;
      outcome += "no memory; ";
      return;
    }
    AcquireOptions options;
    options.wait = wait;
    try {
      into = lock->acquire(options, {}, ec);
    } catch (const std::bad_alloc&) {
      const testkit::Spared spared;
      outcome += "no memory; ";
      return;
    }
    const testkit::Spared spared;
    const bool failed = ec == errc::unavailable || ec == boost::system::errc::not_enough_memory ||
                        ec == errc::timed_out;
    outcome += ec ? ec.message() + "; " : "held; ";
    expect(into ? !ec : failed, "acquire said " + (ec ? ec.message() : "nothing"));
    expect(Clock::now() - start < wait + kGrace, "acquire took too long");
  }
};

struct Phase {
  const char* name;
  std::function<void(Trial&)> prepare;
  std::function<void(Trial&)> act;
  std::function<void(Trial&)> settle;
};

void nothing(Trial&) {}
void open(Trial& trial) { trial.open(); }

void warm(Trial& trial) {
  trial.open();
  trial.locks->connect();
  // What is made once, and threads' own.
  error_code ec;
  (void)trial.locks->lock(trial.name + "-warm")->acquire({.wait = 5s}, {}, ec);
}

void hold(Trial& trial) {
  warm(trial);
  trial.handle = trial.locks->lock(trial.name)->acquire({.wait = 5s});
}

void first_use(Trial& trial) {
  try {
    trial.open();
  } catch (const std::bad_alloc&) {
    const testkit::Spared spared;
    trial.outcome = "open: no memory; ";
    return;
  } catch (const LockError& error) {
    const testkit::Spared spared;
    trial.expect(error.code() == errc::unavailable, "open said " + std::string(error.what()));
    trial.outcome = "open: error; ";
    return;
  }
  trial.acquire(trial.name, 4s, trial.handle);
}

void acquire(Trial& trial) { trial.acquire(trial.name, 4s, trial.handle); }

void rival_holds(Trial& trial) {
  warm(trial);
  trial.rivals = trial.rival.lock(trial.name)->acquire({.wait = 5s});
  trial.releasing = std::thread([&trial] {
    const testkit::Spared mine;
    trial.waits.wait(false);
    // No event to wait for: the waiter whose memory is refused may never stand in the line, and not
    // every store says who does. If this is short the lock is taken without a wait.
    std::this_thread::sleep_for(60ms);
    trial.rivals->release();
  });
}

void wait_for_rival(Trial& trial) {
  trial.waits = true;
  trial.waits.notify_all();
  trial.acquire(trial.name, 4s, trial.handle);
  trial.releasing.join();
}

bool believed(const LockHandle& handle) {
  return handle.state() == HandleState::held || handle.state() == HandleState::suspect;
}

/// Until it has gone up: renewed. Or down to nothing, or the lock is lost.
void await_renewal(const LockHandle& handle, Clock::time_point until) {
  auto lowest = handle.remaining().value_or(0ns);
  eventually(until, [&] {
    const auto now = handle.remaining().value_or(0ns);
    if (now > lowest + 50ms || now == 0ns || !believed(handle)) return true;
    lowest = std::min(lowest, now);
    return false;
  });
}

/// Held on, or told that it is not.
void expect_held_or_told(Trial& trial) {
  if (!trial.handle) return;
  const auto stop = trial.handle.stop_token();
  // Longer than any lease here, where there is one.
  if (testkit::memory_has_failed() && trial.handle.remaining()) {
    await_renewal(trial.handle, within(4500ms));
  }
  if (believed(trial.handle)) {
    trial.outcome += "held on; ";
    return;
  }
  trial.outcome += fmt::format("lost ({}); ", to_string(trial.handle.loss_reason()));
  trial.expect(eventually(within(500ms), [&] { return stop.stop_requested(); }), "not told");
}

void renew(Trial& trial) {
  if (!trial.handle.remaining()) return;
  const testkit::Spared spared;  // the program's own waiting
  await_renewal(trial.handle, within(5s));
}

void look(Trial& trial) {
  try {
    trial.handle.on_state([](HandleState, LossReason) {});
    error_code ec;
    trial.handle.check(ec);
    if (ec) trial.expect(false, "check said " + ec.message());
    trial.locks->status(trial.name);
    const testkit::Spared spared;
    trial.outcome += "seen; ";
  } catch (const std::bad_alloc&) {
    const testkit::Spared spared;
    trial.outcome += "no memory; ";
  } catch (const LockError& error) {
    const testkit::Spared spared;
    trial.expect(
        error.code() == errc::unavailable || error.code() == boost::system::errc::not_enough_memory,
        "status said " + std::string(error.what()));
    trial.outcome += "error; ";
  }
}

void release(Trial& trial) {
  const auto start = Clock::now();
  const auto ec = trial.handle.release();
  const testkit::Spared spared;
  trial.outcome += ec ? ec.message() + "; " : "released; ";
  trial.expect(!ec || ec == errc::unavailable || ec == errc::lock_lost ||
                   ec == boost::system::errc::not_enough_memory,
               "release said " + ec.message());
  trial.expect(Clock::now() - start < kGrace, "release took too long");
}

void drop(Trial& trial) {
  { const auto dropped = std::move(trial.handle); }
  std::this_thread::sleep_for(20ms);
}

void close(Trial& trial) {
  const auto start = Clock::now();
  trial.locks->close();
  const testkit::Spared spared;
  trial.outcome += "closed; ";
  trial.expect(Clock::now() - start < kGrace, "close took too long");
}

void told_at_close(Trial& trial) {
  trial.expect(!believed(trial.handle), "still believed after close");
  trial.expect(trial.handle.stop_token().stop_requested(), "not told by close");
}

/// Where a store cannot do that, it says so.
void export_it(Trial& trial) {
  const auto start = Clock::now();
  error_code ec;
  const auto text = trial.handle.export_grant({.within = 300ms}, ec);
  const testkit::Spared spared;
  trial.outcome += ec ? ec.message() + "; " : "exported; ";
  trial.expect(!ec || ec == errc::unavailable || ec == errc::lock_lost ||
                   ec == errc::not_supported || ec == boost::system::errc::not_enough_memory,
               "export said " + ec.message());
  trial.expect(text.empty() == static_cast<bool>(ec), "a text beside an error, or neither");
  trial.expect(ec || !trial.handle, "exported, and still held");
  trial.expect(Clock::now() - start < kGrace, "export took too long");
}

/// It leads, or says that it has given up.
void lead(Trial& trial) {
  std::atomic<bool> ended = false;
  try {
    LeaderOptions options;
    options.times.retry = 10ms;
    options.on_event = [&ended](const LeaderEvent& event) {
      if (event.kind == LeaderEvent::Kind::gave_up) ended = true;
    };
    Leader leader(*trial.locks, trial.name, {}, options);
    leader.on_leader_changed([](const std::optional<Owner>&) {});
    leader.campaign();
    {
      const testkit::Spared spared;
      trial.expect(eventually(within(kGrace), [&] { return ended || leader.is_leader(); }),
                   "neither leads nor says why");
      trial.outcome += leader.is_leader() ? "leads; " : "gave up; ";
    }
    leader.resign();
  } catch (const std::bad_alloc&) {
    const testkit::Spared spared;
    trial.outcome += "no memory; ";
  } catch (const LockError& error) {
    const testkit::Spared spared;
    trial.expect(error.code() == errc::unavailable, "a leader said " + std::string(error.what()));
    trial.outcome += "error; ";
  }
}

/// It has run, or is due still. Memcached keeps no runs.
void run_once(Trial& trial) {
  bool has_run = false;
  RunRefusal why;
  std::optional<error_code> refused;
  try {
    Schedule schedule(*trial.locks, trial.name, {.at_most_for = 30s});
    schedule.run([&has_run](const std::stop_token&) { has_run = true; }, &why);
  } catch (const std::bad_alloc&) {
    refused = make_error_code(errc::unavailable);
  } catch (const LockError& error) {
    refused = error.code();
  }
  const testkit::Spared spared;
  // What a try left behind holds the lock for a moment: busy.
  const bool is_busy = why.reason == RunRefusal::Reason::busy;
  trial.outcome += has_run ? "has run; " : refused ? refused->message() + "; " : "not now; ";
  trial.expect(has_run || refused || is_busy,
               fmt::format("it was due ({})", to_string(why.reason)));
  trial.expect(!refused || refused == errc::unavailable || refused == errc::not_supported ||
                   refused == errc::lock_lost || refused == boost::system::errc::not_enough_memory,
               "a run said " + refused.value_or(error_code()).message());
}

/// An operator's break, where there is one.
void lose(Trial& trial) {
  const auto stop = trial.handle.stop_token();
  {
    const testkit::Spared spared;
    trial.rival.evict(trial.name, trial.handle.token().value(), {.at_once = true});
  }
  const testkit::Spared spared;
  trial.expect(eventually(within(4500ms), [&] { return stop.stop_requested(); }), "not told");
  trial.expect(!believed(trial.handle), "still believed");
}

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {
      {"first", nothing, first_use, nothing},
      {"connect", open, acquire, nothing},
      {"acquire", warm, acquire, expect_held_or_told},
      {"wait", rival_holds, wait_for_rival, expect_held_or_told},
      {"renew", hold, renew, expect_held_or_told},
      {"look", hold, look, nothing},
      {"export", hold, export_it, expect_held_or_told},
      {"release", hold, release, nothing},
      {"drop", hold, drop, nothing},
      {"lead", warm, lead, nothing},
      {"run", warm, run_once, nothing},
      {"lose", hold, lose, nothing},
      {"close", hold, close, told_at_close},
  };
  return all;
}

/// The same manager, or one more if it could not be opened.
void expect_works_again(Trial& trial) {
  if (!trial.locks) trial.open();
  error_code ec;
  const bool works = eventually(within(12s), [&] {
    return static_cast<bool>(
        trial.locks->lock(trial.name + "-again")->acquire({.wait = 1s}, {}, ec));
  });
  trial.expect(works, "does not work again: " + ec.message());
}

void expect_nothing_left(Trial& trial) {
  const auto start = Clock::now();
  error_code ec;
  const auto got = trial.rival.lock(trial.name)->acquire({.wait = 6s}, {}, ec);
  const auto took = Clock::now() - start;
  trial.expect(static_cast<bool>(got), "a rival does not get it: " + ec.message());
  if (took > 300ms) {
    trial.outcome += fmt::format(
        "free after {} ms; ", std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  }
}

std::uint64_t run(LockManager& rival, const std::string& url, const Phase& phase, Kind kind,
                  std::uint64_t n) {
  const auto name = fmt::format("{}-{}-{}-{}", phase.name, static_cast<int>(kind), ::getpid(), n);
  Trial trial{rival, url, name};
  phase.prepare(trial);
  std::uint64_t count = 0;
  {
    Shortage shortage(kind, n);
    phase.act(trial);
    std::this_thread::sleep_for(10ms);
    count = shortage.end();
  }
  phase.settle(trial);
  if (std::string(phase.name) != "close") expect_works_again(trial);
  trial.handle = {};
  const auto start = Clock::now();
  trial.locks->close();
  trial.expect(Clock::now() - start < kGrace, "close at the end took too long");
  trial.locks.reset();
  trial.rivals.reset();
  expect_nothing_left(trial);
  if (n == 0) return count;
  std::string why;
  for (const auto& one : trial.wrong) why += one + "; ";
  say(why.empty() ? fmt::format("ok {} {}", n, trial.outcome)
                  : fmt::format("bad {} {}({})", n, why, trial.outcome));
  return count;
}

Kind kind_of(const std::string& text) {
  return text == "cpp" ? Kind::cpp : text == "all" ? Kind::all : Kind::thread;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 4) return 2;
  const auto& url = words[0];
  const Phase* phase = nullptr;
  for (const auto& one : phases()) {
    if (one.name == words[1]) phase = &one;
  }
  if (phase == nullptr) return 2;
  const auto kind = kind_of(words[2]);
  auto rival = LockManager::open(url, quiet());
  (void)rival.lock("rivals-first")->acquire({.wait = 10s});
  testkit::spare_present_threads();
  if (std::getenv("STARVED_SHOW") != nullptr) testkit::show_failures();  // NOLINT
  if (words[3] == "count") {
    run(rival, url, *phase, kind, 0);
    say(fmt::format("count {}", run(rival, url, *phase, kind, 0)));
    return 0;
  }
  const auto number = [&](std::size_t i) { return std::stoull(words.at(i)); };
  for (auto n = number(3); n <= number(5); n += number(4)) {
    say(fmt::format("at {}", n));
    ::alarm(60);
    run(rival, url, *phase, kind, n);
  }
  return 0;
}

}  // namespace dlock::starved

int main(int argc, char** argv) { return dlock::starved::main(argc, argv); }
