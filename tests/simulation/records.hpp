// SPDX-License-Identifier: Apache-2.0
//
// What a migration does to a lock of one simulated store, as calls of the SPI; and what must not
// come of it, on whichever store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/simulation/bench.hpp"

namespace dlock::simulation {

inline constexpr auto kSealed = "orders/42";
inline constexpr auto kRecord = "the record";
/// More than any of the simulated stores counts in a run.
inline constexpr std::uint64_t kAbove = 1'000'000'000'000;

using Question = std::function<asio::awaitable<RecordAnswer>(Backend&, TimePoint deadline)>;

/// Asked on the program's loop; it has had a lock before, and so is connected.
template <class AnyBench>
RecordAnswer ask(AnyBench& bench, Program& program, const Question& question) {
  const auto told = std::make_shared<std::optional<RecordAnswer>>();
  program.process.deliver([&program, question, told] {
    auto& process = program.process;
    asio::co_spawn(process.executor(),
                   question(program.store->backend(), process.now() + seconds(5)),
                   [told](const std::exception_ptr&, RecordAnswer answer) { *told = answer; });
  });
  bench.run_until([&] { return told->has_value(); });
  return told->value_or(RecordAnswer{});
}

inline ClaimPtr claim_of(const AttemptPtr& attempt) {
  return core::HandleAccess::hold(attempt->handle)->claim();
}

/// As a coordinator does it. `claim` is that of the attempt, which may know better by now.
template <class AnyBench>
bool seal(AnyBench& bench, Program& program, const ClaimPtr& claim, std::string record = kRecord) {
  const auto answer =
      ask(bench, program, [claim, record = std::move(record)](Backend& backend, TimePoint by) {
        return backend.migration().seal(claim, record, by);
      });
  if (answer.status != RecordStatus::done) return false;
  program.process.deliver([&program, hold = core::HandleAccess::hold(program.last->handle)] {
    if (hold) program.store->retire(*hold);
  });
  return true;
}

template <class AnyBench>
bool open(AnyBench& bench, Program& program, std::uint64_t above) {
  const auto answer = ask(bench, program, [above](Backend& backend, TimePoint by) {
    return backend.migration().set_record(kSealed, kRecord, std::nullopt, above, by);
  });
  return answer.status == RecordStatus::done;
}

/// Has had a lock, and given it back.
template <class AnyBench>
Program& warmed(AnyBench& bench, const std::string& name) {
  auto& program = bench.program(name);
  bench.warm_up(program, "other", milliseconds(500));
  return program;
}

/// One comes just when the holder seals its lock, one a while later.
template <class AnyBench>
bool granted_beside_a_record(AnyBench& bench) {
  auto& comer = warmed(bench, "comer");
  auto& holder = bench.program("holder");
  auto held = holder.acquire(kSealed);
  if (!bench.granted(held)) return false;
  auto comes = comer.acquire(kSealed);
  bench.run(bench.world.between({}, milliseconds(8)));
  if (!seal(bench, holder, claim_of(held))) return false;
  bench.run(seconds(1));
  auto late = bench.program("late").acquire(kSealed);
  bench.run(seconds(10));
  return (comes->told && !comes->ec) || (late->told && !late->ec);
}

/// The holder's place is not the holder's any more.
template <class AnyBench>
bool sealed_by_who_has_lost_it(AnyBench& bench, const std::function<void(Program&)>& lose) {
  auto& holder = bench.program("holder");
  auto held = holder.acquire(kSealed);
  if (!bench.granted(held)) return false;
  const auto claim = claim_of(held);
  lose(holder);
  return seal(bench, holder, claim);
}

/// What has been given out in the target meanwhile is not known here but as the floor.
template <class AnyBench>
bool token_below_the_floor(AnyBench& bench) {
  auto& holder = bench.program("holder");
  auto held = holder.acquire(kSealed);
  if (!bench.granted(held)) return false;
  const auto above = *held->handle.token() + kAbove;
  if (!seal(bench, holder, claim_of(held)) || !open(bench, holder, above)) return false;
  auto next = bench.program("next").acquire(kSealed);
  return bench.granted(next) && *next->handle.token() <= above;
}

/// The same for one who waits while its holder raises the tokens.
template <class AnyBench>
bool waiters_token_below_the_floor(AnyBench& bench) {
  auto& holder = bench.program("holder");
  auto held = holder.acquire(kSealed);
  if (!bench.granted(held)) return false;
  auto waits = bench.program("waiter").acquire(kSealed);
  bench.run(seconds(1));
  const auto above = *held->handle.token() + kAbove;
  const auto raised =
      ask(bench, holder, [claim = claim_of(held), above](Backend& backend, TimePoint by) {
        return backend.migration().raise(claim, above, by);
      });
  holder.release(held);
  return raised.status == RecordStatus::done && bench.granted(waits) &&
         *waits->handle.token() <= above;
}

}  // namespace dlock::simulation
