// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "core/store/grant_text.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::simulation {

namespace {

/// As long a message may be on its way.
constexpr Duration kLate = seconds(5);

/// The backend behind the tap of one client.
class TappedKind final : public SimStore {
 public:
  TappedKind(SimStore& kind, Calls& calls) : kind_(kind), calls_(calls) {}
  std::string_view name() const override { return kind_.name(); }
  const BackendDescriptor& descriptor() const override { return kind_.descriptor(); }
  StoreOptions options() const override { return kind_.options(); }
  std::unique_ptr<Backend> make_backend(Process& process, EventSink& sink) override {
    return tap(kind_.make_backend(process, sink), process, calls_);
  }
  std::vector<Fault> faults() const override { return kind_.faults(); }
  bool strike(Fault fault, Process& near, const std::string& lock) override {
    return kind_.strike(fault, near, lock);
  }
  void heal() override { kind_.heal(); }
  void on_crash(Process& process) override { kind_.on_crash(process); }
  checkers::Belongings belongings() const override { return kind_.belongings(); }
  bool is_permitted(const std::string& key) const override { return kind_.is_permitted(key); }
  Duration lease() const override { return kind_.lease(); }
  Duration remembers() const override { return kind_.remembers(); }
  Duration believes_on() const override { return kind_.believes_on(); }
  bool tokens_fall(const std::set<Fault>& struck) const override {
    return kind_.tokens_fall(struck);
  }
  bool has_network() const override { return kind_.has_network(); }
  Duration longest_lease() const override { return kind_.longest_lease(); }
  Duration progress_bound() const override { return kind_.progress_bound(); }
  Duration calm_bound() const override { return kind_.calm_bound(); }
  std::vector<std::string> owners(const std::string& lock) const override {
    return kind_.owners(lock);
  }

 private:
  SimStore& kind_;
  Calls& calls_;
};

}  // namespace

Client::Client(World& world, Recorder& recorder, std::list<Side>& sides, const Work& work,
               std::string name, Process::Clock clock)
    : world_(world),
      recorder_(recorder),
      work_(work),
      process_(world, std::move(name), clock),
      host_(std::make_shared<SimHost>(process_)) {
  for (auto& side : sides) {
    auto& seat = seats_.emplace_back(Seat{side});
    TappedKind tapped(*side.store, seat.calls);
    seat.store = make_store(host_, tapped);
  }
}

Client::~Client() = default;

void Client::start() {
  for (int i = 0; i < work_.actors; ++i) {
    ++running_;
    auto actor = process_.name() + static_cast<char>('a' + i);
    asio::co_spawn(process_.executor(),
                   work_.several ? act_with_several(std::move(actor)) : act(std::move(actor)),
                   [this](const std::exception_ptr&) { --running_; });
  }
  ++running_;
  asio::co_spawn(process_.executor(), look_around(),
                 [this](const std::exception_ptr&) { --running_; });
}

Seat& Client::seat_of(const std::string& lock) {
  return *std::find_if(seats_.begin(), seats_.end(),
                       [&lock](const Seat& seat) { return seat.side.has(lock); });
}

std::string Client::some_name(const Seat& seat) {
  std::vector<std::string> names;
  for (const auto& lock : work_.locks) {
    if (seat.side.has(lock)) names.push_back(seat.side.name_of(lock));
  }
  return names[world_.below(names.size())];
}

bool Client::ends() const { return stopping_ || !process_.is_alive(); }

void Client::crash() {
  if (!process_.is_alive()) return;
  recorder_.died(process_);
  process_.crash();
  for (auto& seat : seats_) seat.side.store->on_crash(process_);
  if (process_.is_paused()) process_.resume();
  close();
}

void Client::close() {
  for (auto& seat : seats_) {
    asio::co_spawn(process_.executor(), seat.store->close(),
                   [this](const std::exception_ptr&) { ++closed_; });
  }
}

void Client::destroy() {
  cached_.clear();
  for (auto& seat : seats_) seat.store.reset();
}

asio::awaitable<void> Client::act(std::string actor) {
  co_await sleep_until(process_, process_.now() + world_.between({}, work_.longest_think));
  while (!ends()) {
    LetterPtr letter;
    if (work_.mail != nullptr && world_.chance(0.7)) letter = work_.mail->take();
    const auto lock = letter ? letter->lock : some_lock();
    auto wanted = want(actor, lock, letter);
    auto outcome = co_await wanted.get_until(kNever);
    if (outcome->ec) {
      recorder_.given_up(process_, actor, lock);
    } else {
      co_await work(lock, *outcome);
      const bool reads_on = work_.readers && outcome->handle.mode() == Mode::exclusive;
      if (reads_on && world_.chance(0.4)) co_await read_on(lock, *outcome);
      if (work_.mail != nullptr && work_.may_export && world_.chance(0.6)) {
        co_await send_on(lock, *outcome);
      }
      co_await give_back(std::move(*outcome));
    }
    co_await think();
  }
}

asio::awaitable<void> Client::think() {
  const auto pause = work_.resting ? world_.between(milliseconds(400), milliseconds(1200))
                                   : world_.between({}, work_.longest_think);
  co_await sleep_until(process_, process_.now() + pause);
}

// As `dlock status` and `dlock list` do, now and then.
asio::awaitable<void> Client::look_around() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between(milliseconds(50), seconds(2)));
    if (ends()) break;
    auto& seat = seats_.size() == 1 ? seats_.front() : seat_of(some_lock());
    const auto failure = co_await seat.store->connected();
    if (failure.error) continue;
    auto& backend = seat.store->backend();
    const auto deadline = process_.now() + seconds(1);
    if (work_.permits != 0) {
      auto name = some_name(seat);
      co_await backend.inspect_semaphore(std::move(name), deadline);
    } else if (world_.chance(0.3)) {
      auto name = some_name(seat);
      co_await break_lock(seat, std::move(name), deadline);
    } else if (world_.chance(0.5)) {
      auto name = some_name(seat);
      co_await backend.inspect(std::move(name), deadline);
    } else {
      std::string prefix;
      co_await backend.list(std::move(prefix), deadline);
    }
  }
}

// As `dlock break`. A marked lock passes to no other client before its holder has ended; one that
// is freed at once (`--now`) may.
asio::awaitable<void> Client::break_lock(Seat& seat, std::string lock, TimePoint deadline) {
  auto& backend = seat.store->backend();
  if (!backend.capabilities().can_evict) co_return;
  const auto status = co_await backend.inspect(lock, deadline);
  if (!status.value || !status.value->held || !status.value->token) co_return;
  const auto owner = status.value->owner ? status.value->owner->id : std::string();
  EvictRequest request{lock, *status.value->token};
  request.at_once = world_.chance(0.5);
  if (!request.at_once) {
    co_await backend.evict(std::move(request), deadline);
    co_return;
  }
  const auto begun = world_.now();
  seat.breaking_until = kNever;
  const auto evicted = co_await backend.evict(std::move(request), deadline);
  const auto& failure = evicted.failure;
  // Whatever the answer: a repetition says that there is nothing, after the first try did it; and
  // what was not answered may still be on its way.
  const auto by = world_.now() + (failure.error ? kLate : Duration::zero());
  // Where a token comes after its lock (Memcached), the store says whom it struck.
  if (backend.capabilities().wake_up != WakeUp::poll) {
    recorder_.broken(seat.side.prefix + lock, owner, begun, by, !failure.error);
  }
  seat.breaking_until = world_.now() + kLate;
}

OneShot<Client::Outcome> Client::want(const std::string& actor, const std::string& lock,
                                      LetterPtr letter) {
  core::Acquisition::Request request;
  request.name = lock;
  if (letter) {
    request.adoption =
        std::make_shared<const Adoption>(core::GrantText::read(letter->text).adoption());
  }
  const auto& settings = seat_of(lock).store->setup().settings;
  request.limits.connect_timeout = settings.connect_timeout;
  request.limits.retry = settings.retry;
  const auto how = world_.below(10);
  request.limits.once = how == 0;
  if (how == 1 || how == 2) {
    request.limits.deadline = process_.now() + world_.between(milliseconds(5), work_.lease * 2);
  }
  if (work_.readers && world_.chance(0.6)) request.mode = Mode::shared;
  if (work_.permits != 0) {
    request.mode = Mode::shared;
    request.limit = work_.permits;
    request.permits = static_cast<std::uint32_t>(1 + world_.below(work_.permits));
  }
  OneShot<Outcome> done(process_);
  recorder_.wanted(process_, actor, lock);
  auto cancel =
      start(lock, std::move(request),
            [this, done, actor, lock, letter](error_code ec, LockHandle handle) {
              Outcome outcome;
              outcome.ec = ec;
              if (!ec) {
                if (work_.cached && handle.state() == HandleState::lost) {
                  recorder_.wrong("a lock that stayed is given again, and its time was over");
                }
                outcome.told = std::make_shared<Told>();
                outcome.grant =
                    recorder_.granted(process_, actor, lock, core::HandleAccess::hold(handle));
                if (work_.mail != nullptr && process_.is_alive()) {
                  const auto& owner_id = recorder_.owner_of(outcome.grant);
                  work_.mail->granted(lock, handle.token().value_or(0), owner_id, letter);
                }
                handle.on_state([this, told = outcome.told, grant = outcome.grant](
                                    HandleState state, LossReason why) {
                  if (state != HandleState::lost) return;
                  if (!told->noticed || told->callbacks > 0) {
                    recorder_.told_lost(process_, grant, why);
                  }
                  told->noticed = true;
                  ++told->callbacks;
                });
              }
              outcome.handle = std::move(handle);
              done.set(std::move(outcome));
            });
  if (how == 3) {
    const auto when = process_.now() + world_.between({}, work_.longest_hold * 4);
    process_.call_at(when, [cancel = std::move(cancel)] {
      if (cancel) cancel();
    });
  }
  return done;
}

/// Returns what cancels it.
std::function<void()> Client::start(const std::string& lock, core::Acquisition::Request request,
                                    detail::AcquireHandler handler) {
  auto& store = seat_of(lock).store;
  if (work_.cached) {
    auto& cached = cached_[lock];
    if (!cached) cached = std::make_shared<core::CachedLock>(work_.keep);
    return cached->acquire(store, std::move(request),
                           std::make_shared<detail::AcquireHandler>(std::move(handler)));
  }
  auto acquisition =
      std::make_shared<core::Acquisition>(store, std::move(request), std::move(handler));
  std::weak_ptr<core::Acquisition> weak = acquisition;
  store->acquire(std::move(acquisition));
  return [weak = std::move(weak)] {
    if (const auto alive = weak.lock()) alive->cancel();
  };
}

Duration Client::hold_time() {
  if (world_.chance(0.06)) return world_.between(work_.lease / 2, work_.lease * 2);
  return world_.between({}, work_.longest_hold);
}

// Looks before each write, as a program should; the write itself may still be late.
asio::awaitable<void> Client::work(std::string lock, Outcome& held) {
  const auto writes = world_.below(3);
  const auto pause = hold_time() / static_cast<int>(writes + 1);
  for (std::uint64_t i = 0; i <= writes; ++i) {
    co_await sleep_until(process_, process_.now() + pause);
    const auto state = held.handle.state();
    if (state == HandleState::lost || !process_.is_alive()) co_return;
    const auto token = held.handle.token();
    if (i == writes || !token || held.handle.mode() == Mode::shared) continue;
    world_.after(
        world_.between({}, milliseconds(2)),
        [this, lock, grant = held.grant, token = *token] { recorder_.write(grant, lock, token); });
  }
}

// A writer that is done with writing.
asio::awaitable<void> Client::read_on(std::string lock, Outcome& held) {
  if (held.handle.state() == HandleState::lost || !process_.is_alive()) co_return;
  recorder_.became_reader(process_, held.grant);
  OneShot<bool> done(process_);
  detail::GrantAccess::grant(held.handle)->downgrade([done](error_code) { done.set(true); });
  co_await done.get_until(kNever);
  co_await work(std::move(lock), held);
}

asio::awaitable<void> Client::send_on(std::string lock, Outcome& held) {
  if (held.handle.state() == HandleState::lost || !process_.is_alive()) co_return;
  const auto token = held.handle.token().value_or(0);
  const auto hold = core::HandleAccess::hold(held.handle);
  OneShot<bool> done(process_);
  const auto within = std::chrono::duration_cast<milliseconds>(
      world_.between(milliseconds(1), world_.chance(0.5) ? milliseconds(200) : work_.lease));
  hold->export_grant(within, [this, lock, token, hold, done, grant = held.grant](
                                 error_code ec, std::string text) mutable {
    if (!ec && hold->has_ended()) recorder_.releasing(process_, grant);
    if (!ec && process_.is_alive()) {
      world_.trace("{}: exports {}", process_.name(), grant);
      work_.mail->post({lock, std::move(text), token});
    }
    done.set(!ec);
  });
  const auto exported = co_await done.get_until(kNever);
  if (!*exported) co_return;
  if (hold->has_ended()) {
    detail::GrantAccess::take(held.handle)->end_export();
  } else {
    co_await work(std::move(lock), held);
  }
}

asio::awaitable<void> Client::give_back(Outcome held) {
  if (!held.handle) co_return;
  if (held.handle.state() == HandleState::lost) {
    if (!held.told->noticed) {
      recorder_.told_lost(process_, held.grant, held.handle.loss_reason());
    }
    held.told->noticed = true;
    recorder_.dropped(process_, held.grant);
  } else {
    recorder_.releasing(process_, held.grant);
  }
  if (world_.chance(0.3)) co_return;  // the handle's destructor gives it back
  OneShot<bool> done(process_);
  held.handle.start_release([done](error_code) { done.set(true); });
  co_await done.get_until(kNever);
}

}  // namespace dlock::simulation
