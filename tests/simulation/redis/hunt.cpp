// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/hunt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/simulation/redis/program.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr std::array<const char*, 2> kLocks{"a", "b"};
constexpr seconds kFaultyTime{30};
/// A lease, and time for the answer.
constexpr milliseconds kToldWithin{3500};

/// One thread of a program: acquires, keeps, gives back, gives up.
struct Actor {
  Program* program;
  std::string lock;
  std::shared_ptr<Attempt> attempt;
  bool granted = false;
  std::string owner_id;
  TimePoint must_be_lost = kNever;
};

class Hunt {
 public:
  Hunt(std::uint64_t seed, bool exclusive, bool tracing)
      : world_(seed, tracing), network_(world_), redis_(world_, network_, exclusive) {
    redis_.on_forgotten = [this](const std::string& lock, const std::string& id, Fault) {
      forgotten_.insert(id);
      for (auto& actor : actors_) {
        if (actor->granted && actor->lock == lock && actor->owner_id == id) {
          actor->must_be_lost = std::min(actor->must_be_lost, world_.now() + kToldWithin);
        }
      }
    };
    world_.on_step([this](Process&) { look(); });
    for (int i = 0; i < 3; ++i) add_program();
  }

  Found run() {
    const auto end = world_.now() + kFaultyTime;
    while (world_.now() < end && complaint_.empty()) {
      strike();
      world_.run_until(world_.now() + world_.between(milliseconds(50), milliseconds(2500)));
    }
    if (complaint_.empty()) check_progress();
    finish();
    return {complaint_, world_.trace_text()};
  }

 private:
  void complain(std::string text) {
    if (!complaint_.empty()) return;
    complaint_ = std::move(text);
    world_.trace("COMPLAINT: {}", complaint_);
  }

  Process::Clock clock() {
    const auto drift = static_cast<double>(world_.below(2001)) / 1e6 - 0.001;
    return {drift, milliseconds(0)};
  }

  void add_program() {
    auto name = fmt::format("p{}", programs_.size());
    programs_.push_back(std::make_unique<Program>(world_, redis_, std::move(name), clock()));
    for (int i = 0; i < 2; ++i) {
      actors_.push_back(std::make_unique<Actor>());
      actors_.back()->program = programs_.back().get();
      next_act(actors_.back().get());
    }
  }

  void next_act(Actor* actor) {
    world_.after(world_.between(milliseconds(20), milliseconds(1500)), [this, actor] {
      if (ending_ || !actor->program->process.is_alive()) return;
      if (!actor->program->process.is_paused()) act(*actor);
      next_act(actor);
    });
  }

  void act(Actor& actor) {
    if (!actor.attempt) {
      actor.lock = kLocks.at(world_.below(kLocks.size()));
      std::optional<milliseconds> wait;
      if (world_.chance(0.2)) wait = milliseconds(0);
      if (!wait && world_.chance(0.7)) wait = milliseconds(100 + world_.below(4000));
      actor.attempt = actor.program->acquire(wait, actor.lock);
      return;
    }
    if (!actor.attempt->told) {
      if (world_.chance(0.1)) cancel(actor);
      return;
    }
    if (actor.attempt->lost() || actor.attempt->ec || world_.chance(0.4)) drop(actor);
  }

  static void cancel(Actor& actor) { actor.program->cancel(*actor.attempt); }

  void drop(Actor& actor) {
    if (actor.granted) world_.trace("{}: lets {} go", actor.program->process.name(), actor.lock);
    actor.granted = false;
    actor.must_be_lost = kNever;
    actor.attempt->handle = LockHandle();
    actor.attempt.reset();
  }

  void strike() {
    auto& program = *programs_[world_.below(programs_.size())];
    auto& process = program.process;
    if (!process.is_alive()) return;
    const auto faults = redis_.faults();
    const auto which = world_.below(faults.size() + 3);
    if (which < faults.size()) {
      const auto fault = faults[which];
      if (is_of_message(fault)) return network_.arm(process, fault, [] {});
      if (redis_.strike(fault, process, kLocks.at(world_.below(kLocks.size())))) {
        clock_stepped_ = clock_stepped_ || fault == Fault::server_clock_jump;
        data_lost_ = data_lost_ || (fault != Fault::server_clock_jump && fault != Fault::deleted);
      }
      return;
    }
    const auto time = world_.between(milliseconds(50), milliseconds(6000));
    if (which == faults.size() && !process.is_paused()) {
      world_.trace("{}: paused", process.name());
      process.pause();
      world_.after(time, [&process] { process.resume(); });
    } else if (which == faults.size() + 1) {
      world_.trace("{}: cut off", process.name());
      network_.cut(process);
      world_.after(time, [this, &process] { network_.mend(process); });
    } else if (which == faults.size() + 2) {
      world_.trace("{}: crashes", process.name());
      process.crash();
      redis_.on_crash(process);
      add_program();
    }
  }

  static bool believes(const Actor& actor) {
    if (!actor.granted || !actor.program->process.is_alive()) return false;
    const auto state = actor.attempt->handle.state();
    return state == HandleState::held || state == HandleState::suspect;
  }

  /// After each step of a process.
  void look() {
    if (looking_) return;
    looking_ = true;
    for (auto& actor : actors_) {
      if (!actor->attempt || !actor->program->process.is_alive()) continue;
      const auto& attempt = *actor->attempt;
      if (!actor->granted && attempt.told && !attempt.ec && attempt.handle) grant(*actor);
      const bool overdue = world_.now() > actor->must_be_lost;
      if (overdue && !actor->program->process.is_paused() && believes(*actor)) {
        complain(fmt::format("{} still believes in {}, which was forgotten",
                             actor->program->process.name(), actor->lock));
      }
    }
    looking_ = false;
  }

  void grant(Actor& actor) {
    actor.granted = true;
    const auto& hold = core::HandleAccess::hold(actor.attempt->handle);
    const auto claim = hold->claim();
    if (!claim) return;
    actor.owner_id = claim->request().owner.id;
    const auto token = actor.attempt->handle.token().value_or(0);
    world_.trace("{}: has {} with token {}", actor.program->process.name(), actor.lock, token);
    const bool excused = forgotten_.contains(actor.owner_id);
    for (const auto& other : actors_) {
      if (other.get() == &actor || other->lock != actor.lock || !believes(*other)) continue;
      if (excused || forgotten_.contains(other->owner_id)) continue;
      complain(fmt::format("{} and {} both have {}", other->program->process.name(),
                           actor.program->process.name(), actor.lock));
    }
    auto& last = last_tokens_[actor.lock];
    // Tokens come from the clock once the last one is lost.
    const bool may_fall = excused || (clock_stepped_ && data_lost_);
    if (token <= last && !may_fall) complain(fmt::format("token {} after {}", token, last));
    last = std::max(last, token);
  }

  void check_progress() {
    redis_.heal();
    for (const auto& program : programs_) {
      network_.disarm(program->process);
      network_.mend(program->process);
      if (program->process.is_paused()) program->process.resume();
    }
    ending_ = true;
    for (auto& actor : actors_) {
      if (!actor->attempt) continue;
      if (!actor->attempt->told) cancel(*actor);
      drop(*actor);
    }
    Program fresh(world_, redis_, "fresh", {});
    for (const auto* lock : kLocks) {
      const auto attempt =
          fresh.acquire(std::chrono::duration_cast<milliseconds>(redis_.progress_bound()), lock);
      world_.run_until(world_.now() + redis_.progress_bound() + seconds(1));
      if (!attempt->held()) complain(fmt::format("nobody gets {} any more", lock));
      attempt->handle = LockHandle();
    }
    close(fresh);
    world_.run_until(world_.now() + seconds(20));
  }

  static void close(Program& program) {
    asio::co_spawn(program.process.executor(), program.store->close(),
                   [](const std::exception_ptr&) {});
  }

  void finish() {
    ending_ = true;
    for (auto& actor : actors_) {
      if (actor->attempt) drop(*actor);
    }
    redis_.heal();
    for (const auto& program : programs_) {
      if (program->process.is_paused()) program->process.resume();
      close(*program);
    }
    world_.run_until(world_.now() + seconds(20) + redis_.longest_lease());
    const auto left = redis_.belongings();
    for (const auto& key : left.keys) {
      if (!redis_.is_permitted(key)) complain("left: " + key);
    }
    for (const auto& channel : left.watches) complain("left: subscription to " + channel);
  }

  World world_;
  Network network_;
  SimRedis redis_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::set<std::string> forgotten_;
  std::map<std::string, std::uint64_t> last_tokens_;
  std::string complaint_;
  bool clock_stepped_ = false;
  bool data_lost_ = false;
  bool ending_ = false;
  bool looking_ = false;
};

}  // namespace

Found hunt(std::uint64_t seed, bool exclusive, bool tracing) {
  return Hunt(seed, exclusive, tracing).run();
}

}  // namespace dlock::simulation::redis
