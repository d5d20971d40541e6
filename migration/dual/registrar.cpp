// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/registrar.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/sequencer.hpp"
#include "dlock/spi/error.hpp"
#include "migration/dual/dual_steps.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;

/// So many times somebody else was faster; then a pause, so that not all try in step.
constexpr int kEagerTries = 3;
constexpr int kLeaveTries = 5;

Failure closed() { return make_failure(errc::closed, ""); }

Duration retry_pause(milliseconds lease) {
  return std::clamp<Duration>(lease / 20, milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

Registrar::Registrar(DualStores stores, Settings settings)
    : stores_(std::move(stores)),
      settings_(std::move(settings)),
      news_(std::make_shared<Signal>(env())) {
  const auto& me = stores_.from->me();
  me_.id = program_id(make_uuid(env()));
  me_.phase = settings_.phase;
  me_.pid = has_host_pid(me) ? me.pid : 0;
  me_.host = me.host;
  me_.app = me.app;
}

Registrar::~Registrar() { env().cancel(deadline_timer_); }

Env& Registrar::env() const { return stores_.from->env(); }

asio::awaitable<Registrar::Entered> Registrar::enter() {
  Entered entered;
  const bool here = registration_ && !registration_->is_over(env().now());
  if (closed_) {
    entered.failure = closed();
  } else if (!here) {
    Waiter waiter(env());
    entering_.push_back(waiter);
    news_->notify();
    if (!std::exchange(running_, true)) {
      (stores_.window ? stores_.window : stores_.to)->receive(shared_from_this(), run());
    }
    const auto told = co_await waiter.get_until(kNever);
    entered.failure = *told;
  }
  if (entered.failure.error) co_return entered;
  if (registration_ && !registration_->is_over(env().now())) {
    entered.registration = registration_;
  } else {
    entered.failure = make_failure(errc::unavailable, "the registration was over at once");
  }
  co_return entered;
}

asio::awaitable<Failure> Registrar::reach(std::shared_ptr<Registration> registration,
                                          std::uint64_t token) {
  highest_ = std::max(highest_, token);
  while (token > written_top_ && registration->until() != kNever) {
    if (closed_) co_return closed();
    if (registration != registration_ || registration->is_over(env().now())) {
      co_return make_failure(errc::not_registered, "the registration is over");
    }
    Waiter waiter(env());
    reaching_.push_back(waiter);
    news_->notify();
    const auto told = co_await waiter.get_until(kNever);
    if (told->error) co_return *told;
  }
  co_return Failure{};
}

void Registrar::close() {
  if (std::exchange(closed_, true)) return;
  end_registration(LossReason::closed);
  news_->notify();
}

TimePoint Registrar::next_due() const {
  if (!entering_.empty() || !reaching_.empty()) return env().now();
  return registration_ && !registration_->is_over(env().now()) ? renew_at_ : kNever;
}

asio::awaitable<void> Registrar::run() {
  const auto self = shared_from_this();
  const auto home = stores_.window ? stores_.window : stores_.to;
  while (!closed_) {
    co_await news_->wait_until(next_due());
    if (closed_) break;
    const bool here = registration_ && !registration_->is_over(env().now());
    Failure failure;
    if (!here && !entering_.empty()) {
      failure = co_await register_anew();
    } else if (here && (!reaching_.empty() || renew_at_ <= env().now())) {
      failure = co_await renew_now();
    }
    // Who came while an old registration was found to be over waits for the next one.
    const bool renewed = here && registration_ && !registration_->is_over(env().now());
    if (!here || renewed) {
      for (const auto& waiter : std::exchange(entering_, {})) {
        waiter.set(renewed ? Failure{} : failure);
      }
    }
    for (const auto& waiter : std::exchange(reaching_, {})) waiter.set(failure);
  }
  for (const auto& waiter : std::exchange(entering_, {})) waiter.set(closed());
  for (const auto& waiter : std::exchange(reaching_, {})) waiter.set(closed());
  co_await leave();
  home->dismiss(self);
}

asio::awaitable<Failure> Registrar::find_window() {
  Failure failure;
  if (!stores_.window) {
    auto found = co_await durable_end(stores_.from, stores_.to);
    failure = found.failure;
    if (found.value) stores_.window = *found.value;
  }
  co_return failure;
}

Failure Registrar::is_ours(const WindowNote::Look& look) const {
  if (look.failure.error) return look.failure;
  const auto& plan = settings_.plan;
  const auto& at = stores_.window->name();
  if (!look.window) {
    return make_failure(
        errc::not_registered,
        fmt::format(
            "the store '{0}' has no window of plan '{1}': it was not started, or the window "
            "is lost, or it is in another store (`window: STORE`); see `dlock migrate "
            "status {1}`",
            at, plan));
  }
  const auto& window = *look.window;
  if (!window.is_open()) {
    return make_failure(errc::not_registered,
                        fmt::format("the start of plan '{0}' is under way, or was refused or "
                                    "broken off; run `dlock migrate start {0}`: it says why",
                                    plan));
  }
  if (window.from == stores_.from->name() && window.to == stores_.to->name()) return {};
  return make_failure(
      errc::config_unsafe,
      fmt::format("plan '{}' goes from '{}' to '{}', but here from '{}' to '{}'; "
                  "write the same stores as where it was started",
                  plan, window.from, window.to, stores_.from->name(), stores_.to->name()));
}

Failure Registrar::not_admitted(const Window& window) const {
  if (window.finished) {
    return make_failure(errc::window_closed,
                        fmt::format("plan '{}' is finished: write `store: {}` instead of `migrate`",
                                    window.plan, window.to));
  }
  return make_failure(
      errc::window_closed,
      fmt::format(
          "plan '{0}' admits programs of phase {1} now, and this one has `phase: {2}`; write "
          "`phase: {3}`, or move the window with `dlock migrate {4} {0}`",
          window.plan, phases_text(window.lo, window.hi), settings_.phase,
          settings_.phase > window.hi ? window.hi : window.lo,
          settings_.phase > window.hi ? "advance" : "rollback"));
}

// Whoever died is found by those who live; it costs nothing, as their own beats are written anyway.
void Registrar::sweep(Window& window) {
  for (const auto& id : watch_.over()) {
    if (id != me_.id) migration::leave(window, id);
  }
}

Failure Registrar::add_to(const WindowNote::Look& look, Window& window) {
  watch_.see(window, look.sent, look.answered);
  sweep(window);
  // As high as others may go already, its own first tokens hardly need a write of their own.
  me_.top = std::max(wanted_top(), window.highest_token());
  switch (migration::enter(window, me_)) {
    case Entry::entered:
      break;
    case Entry::not_admitted:
      return not_admitted(window);
    case Entry::full:
      return make_failure(
          errc::not_registered,
          fmt::format("plan '{}' has {} programs registered, and that is all it can have; give "
                      "programs that share a host one lock manager, or make several plans",
                      window.plan, kMostPrograms));
  }
  return {};
}

asio::awaitable<Failure> Registrar::register_anew() {
  auto failure = co_await find_window();
  if (failure.error) co_return failure;
  WindowNote note(stores_.window, settings_.plan);
  auto look = co_await note.read();
  for (int conflicts = 0; !closed_; ++conflicts) {
    failure = is_ours(look);
    if (failure.error) co_return failure;
    auto window = *look.window;
    if (window.finished && settings_.phase == kLastPhase) {
      end_registration();
      registration_ = std::make_shared<Registration>(me_.id, window.plan_id, kNever, window.floor);
      renew_at_ = kNever;
      co_return Failure{};
    }
    failure = window.finished ? not_admitted(window) : add_to(look, window);
    if (failure.error) {
      // What is left of an earlier registration need not be waited for.
      if (window.find(me_.id) != nullptr) co_await leave();
      co_return failure;
    }
    may_stand_ = true;
    auto written = co_await note.write(look.text, window);
    const auto stands = co_await settle(note, window, written);
    if (stands.failure.error) co_return stands.failure;
    if (stands.done) co_return admitted(window, written.sent);
    look = stands.look;
    co_await pause_after(conflicts);
  }
  co_return closed();
}

asio::awaitable<Failure> Registrar::renew_now() {
  WindowNote note(stores_.window, settings_.plan);
  WindowNote::Look look;
  if (known_) {
    look = *std::exchange(known_, std::nullopt);
  } else {
    look = co_await note.read();
  }
  for (int conflicts = 0; !closed_; ++conflicts) {
    // Until it can be read again nothing is known; the deadline decides.
    if (look.failure.error) co_return renew_later(look.failure);
    auto window = look.window.value_or(Window());
    if (look.window && window.finished && settings_.phase == kLastPhase) {
      // It may have ended while the window was read.
      if (!registration_ || registration_->is_over(env().now())) {
        end_registration();
        co_return make_failure(errc::not_registered, "the registration is over");
      }
      env().cancel(std::exchange(deadline_timer_, 0));
      registration_->extend(kNever);
      renew_at_ = kNever;
      co_return Failure{};
    }
    if (!migration::renew(window, me_.id, wanted_top())) {
      may_stand_ = false;
      end_registration(LossReason::removed);
      co_return make_failure(errc::not_registered,
                             "the registration was taken away, or the window is lost");
    }
    watch_.see(*look.window, look.sent, look.answered);
    sweep(window);
    auto written = co_await note.write(look.text, window);
    const auto stands = co_await settle(note, window, written);
    if (stands.failure.error) co_return renew_later(stands.failure);
    if (stands.done) co_return admitted(window, written.sent);
    look = stands.look;
    co_await pause_after(conflicts);
  }
  co_return closed();
}

Failure Registrar::renew_later(const Failure& why) {
  renew_at_ = env().now() + retry_pause(lease_);
  return why;
}

// Our beat is nobody else's: where it stands, our request was carried out.
asio::awaitable<Registrar::Stands> Registrar::settle(WindowNote note, Window window,
                                                     WindowNote::Written written) {
  Stands stands;
  switch (written.outcome) {
    case WindowNote::Written::Outcome::done:
      stands.done = true;
      break;
    case WindowNote::Written::Outcome::conflict:
      stands.look = std::move(written.found);
      break;
    case WindowNote::Written::Outcome::failed:
      stands.failure = written.failure;
      break;
    case WindowNote::Written::Outcome::unknown: {
      stands.look = co_await note.read();
      stands.failure = stands.look.failure;
      if (!stands.look.window) break;
      const auto* const mine = stands.look.window->find(me_.id);
      stands.done = mine != nullptr && mine->beat == window.find(me_.id)->beat;
      break;
    }
  }
  if (stands.done && written.outcome == WindowNote::Written::Outcome::done) {
    WindowNote::Look look;
    look.text = to_text(window);
    look.window = std::move(window);
    look.sent = written.sent;
    look.answered = env().now();
    known_ = std::move(look);
  }
  co_return stands;
}

Failure Registrar::admitted(const Window& window, TimePoint sent) {
  const auto until = WindowWatch::believed_until(sent, window.lease);
  const auto now = env().now();
  lease_ = window.lease;
  written_top_ = window.find(me_.id)->top;
  if (registration_ && registration_->is_over(now)) end_registration();
  if (until <= now) {
    return make_failure(errc::unavailable,
                        fmt::format("the store '{}' took longer than a registration lasts",
                                    stores_.window->name()));
  }
  if (registration_) {
    registration_->extend(until);
    registration_->raise_floor(window.floor);
  } else {
    registration_ = std::make_shared<Registration>(me_.id, window.plan_id, until, window.floor);
  }
  // Not in step with others: each change of the window makes another's one be tried again.
  const auto third = Duration(window.lease) / 3;
  const auto spread = static_cast<std::uint64_t>(std::max<Duration::rep>(third.count() / 10, 1));
  renew_at_ = sent + third - Duration(static_cast<Duration::rep>(env().random() % spread));
  arm_deadline();
  return {};
}

void Registrar::arm_deadline() {
  env().cancel(deadline_timer_);
  deadline_timer_ = env().call_at(registration_->until(), [this] {
    deadline_timer_ = 0;
    if (registration_ && registration_->is_over(env().now())) end_registration();
  });
}

void Registrar::end_registration(LossReason why) {
  env().cancel(std::exchange(deadline_timer_, 0));
  if (const auto over = std::exchange(registration_, nullptr)) over->end(why);
  // A renewal that waits for its time has none any more.
  for (const auto& waiter : std::exchange(reaching_, {})) {
    waiter.set(make_failure(errc::not_registered, "the registration is over"));
  }
}

std::uint64_t Registrar::wanted_top() const {
  if (highest_ == 0) return 0;
  return highest_ < kTokenEnd - 2 * kTopStep ? highest_ + kTopStep : highest_;
}

asio::awaitable<void> Registrar::pause_after(int conflicts) {
  if (conflicts < kEagerTries) co_return;
  const auto most = static_cast<std::uint64_t>(std::min(conflicts, 10)) * 3;
  co_await sleep_until(env(), env().now() + milliseconds(1 + env().random() % most));
}

// What lapses anyway is not waited for: best effort.
asio::awaitable<void> Registrar::leave() {
  if (!may_stand_ || !stores_.window) co_return;
  WindowNote note(stores_.window, settings_.plan);
  WindowNote::Look look;
  if (known_) {
    look = *std::exchange(known_, std::nullopt);
  } else {
    look = co_await note.read();
  }
  for (int i = 0; i < kLeaveTries && look.window; ++i) {
    auto window = *look.window;
    if (!migration::leave(window, me_.id)) break;
    auto written = co_await note.write(look.text, window);
    if (written.outcome != WindowNote::Written::Outcome::conflict) break;
    look = std::move(written.found);
  }
}

}  // namespace dlock::core::migration
