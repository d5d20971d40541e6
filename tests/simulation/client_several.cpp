// SPDX-License-Identifier: Apache-2.0
//
// What a simulated program does with several locks at once, of one store or of two.
#include "tests/simulation/client.hpp"

#include "dlock/distributed_lock.hpp"

namespace dlock::simulation {
namespace {

/// How late on its loop a program may be told what is so.
constexpr Duration kLateTelling = milliseconds(20);

}  // namespace

// All or none of them, and as good as the worst.
asio::awaitable<void> Client::act_with_several(std::string actor) {
  co_await think();
  while (!ends()) {
    const auto parts = std::make_shared<Parts>();
    auto wanted = want_several(actor, parts);
    auto outcome = co_await wanted.get_until(kNever);
    if (outcome->ec) {
      if (parts->held != 0) recorder_.wrong("an acquire of several has failed, and some are kept");
    } else {
      const auto asked = parts->held;
      co_await sleep_until(process_, process_.now() + hold_time());
      if (process_.is_alive()) judge_several(outcome->handle, *parts, asked);
      OneShot<bool> done(process_);
      outcome->handle.start_release([done](error_code) { done.set(true); });
      if (parts->held != 0) recorder_.wrong("some of several are kept by the release");
      co_await done.get_until(kNever);
    }
    co_await think();
  }
}

void Client::judge_several(LockHandle& handle, const Parts& parts, std::size_t asked) {
  const auto now = world_.now();
  if (parts.held != asked) recorder_.wrong("some of several were given back before the rest");
  const bool is_lost = handle.state() == HandleState::lost;
  if (parts.lost_at && !is_lost) {
    recorder_.wrong("one of several is lost, and its handle says that they are held");
  }
  const bool is_due = parts.lost_at && now > *parts.lost_at + kLateTelling &&
                      now > process_.resumed() + kLateTelling;
  if (is_due && !parts.told_at) recorder_.wrong("one of several is lost, and nobody is told");
  const auto left = handle.remaining();
  for (const auto& weak : parts.holds) {
    const auto hold = weak.lock();
    const auto least = hold ? hold->remaining() : std::nullopt;
    if (least && (!left || *left > *least)) {
      recorder_.wrong("the handle of several is to be believed longer than one of them");
    }
  }
}

OneShot<Client::Outcome> Client::want_several(const std::string& actor,
                                              std::shared_ptr<Parts> parts) {
  const bool only_twins = !work_.twins.empty() && world_.chance(0.3);
  auto names = only_twins ? work_.twins : work_.locks;
  while (names.size() > 2 && world_.chance(0.5)) {
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(world_.below(names.size())));
  }
  for (auto i = names.size(); i > 1; --i) std::swap(names[i - 1], names[world_.below(i)]);
  std::vector<std::shared_ptr<DistributedLock>> locks;
  for (auto& name : names) {
    auto& seat = seat_of(name);
    const SimLock::Asker asker{&recorder_, &process_, actor, parts, seat.side.prefix};
    locks.push_back(std::make_shared<SimLock>(asker, seat.store, seat.side.name_of(name)));
  }
  const auto size = locks.size();
  const auto all = std::make_shared<MultiLock>(std::move(locks));
  AcquireOptions options;
  const auto how = world_.below(10);
  options.wait = how == 0 ? milliseconds(0) : kWaitForever;
  auto over = kNever;
  // In a build whose clock is the real one nobody's wait ends.
  const bool is_bounded = how >= 2 && how <= 4 && BoottimeClock::now() == process_.now();
  if (is_bounded) {
    options.wait = std::chrono::ceil<milliseconds>(
        world_.between(milliseconds(5), how == 4 ? work_.lease * 2 : work_.longest_hold * 4));
    // The last lock that is asked for gets its store's first answer, as any short wait does.
    const auto last_ask = process_.now() + std::max(*options.wait, kFirstAnswer);
    over = process_.to_world(last_ask + kFirstAnswer);
  }
  OneShot<Outcome> done(process_);
  auto cancel = all->start_acquire(
      options, [this, done, parts, size, over, all](error_code ec, LockHandle handle) {
        if (!ec && parts->held != size) recorder_.wrong("granted without all of several");
        // After a pause, too, the store's first answer is waited for.
        const bool is_late = over != kNever && world_.now() > over + kLateTelling &&
                             world_.now() > process_.resumed() + kFirstAnswer + kLateTelling;
        if (is_late) recorder_.wrong("the one deadline of several has passed");
        if (handle) {
          handle.on_state([this, parts](HandleState state, LossReason) {
            if (state != HandleState::lost) return;
            if (parts->told_at) recorder_.wrong("the loss of several is told twice");
            parts->told_at = world_.now();
          });
        }
        Outcome outcome;
        outcome.ec = ec;
        outcome.handle = std::move(handle);
        done.set(std::move(outcome));
      });
  if (how == 1) {
    const auto when = process_.now() + world_.between({}, work_.longest_hold * 4);
    process_.call_at(when, [cancel = std::move(cancel)]() mutable { cancel(); });
  }
  return done;
}

}  // namespace dlock::simulation
