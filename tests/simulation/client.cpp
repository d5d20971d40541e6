// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "core/store/grant_text.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/distributed_lock.hpp"

namespace dlock::simulation {

/// What a holder has heard of its loss: by a callback, by asking, or both.
struct Client::Told {
  bool noticed = false;
  int callbacks = 0;
};

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

Client::Client(World& world, Recorder& recorder, SimStore& kind, const Work& work, std::string name,
               Process::Clock clock)
    : world_(world),
      recorder_(recorder),
      kind_(kind),
      work_(work),
      process_(world, std::move(name), clock),
      host_(std::make_shared<SimHost>(process_)) {
  TappedKind tapped(kind, calls_);
  store_ = make_store(host_, tapped);
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

bool Client::ends() const { return stopping_ || !process_.is_alive(); }

void Client::crash() {
  if (!process_.is_alive()) return;
  recorder_.died(process_);
  process_.crash();
  kind_.on_crash(process_);
  if (process_.is_paused()) process_.resume();
  close();
}

void Client::close() {
  asio::co_spawn(process_.executor(), store_->close(),
                 [this](const std::exception_ptr&) { closed_ = true; });
}

asio::awaitable<void> Client::act(std::string actor) {
  co_await sleep_until(process_, process_.now() + world_.between({}, work_.longest_think));
  while (!ends()) {
    LetterPtr letter;
    if (work_.mail != nullptr && world_.chance(0.7)) letter = work_.mail->take();
    const auto lock = letter ? letter->lock : work_.locks[world_.below(work_.locks.size())];
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
      const bool is_lost = outcome->handle.state() == HandleState::lost;
      if (parts->is_lost && !is_lost && process_.is_alive()) {
        recorder_.wrong("one of several is lost, and its handle says that they are held");
      }
      if (parts->held != asked) recorder_.wrong("some of several were given back before the rest");
      OneShot<bool> done(process_);
      outcome->handle.start_release([done](error_code) { done.set(true); });
      if (parts->held != 0) recorder_.wrong("some of several are kept by the release");
      co_await done.get_until(kNever);
    }
    co_await think();
  }
}

OneShot<Client::Outcome> Client::want_several(const std::string& actor,
                                              std::shared_ptr<Parts> parts) {
  auto names = work_.locks;
  while (names.size() > 2 && world_.chance(0.5)) {
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(world_.below(names.size())));
  }
  for (auto i = names.size(); i > 1; --i) std::swap(names[i - 1], names[world_.below(i)]);
  std::vector<std::shared_ptr<DistributedLock>> locks;
  for (auto& name : names) {
    const SimLock::Asker asker{&recorder_, &process_, actor, parts};
    locks.push_back(std::make_shared<SimLock>(asker, store_, std::move(name)));
  }
  const auto size = locks.size();
  const auto all = std::make_shared<MultiLock>(std::move(locks));
  AcquireOptions options;
  const auto how = world_.below(10);
  options.wait = how == 0 ? milliseconds(0) : kWaitForever;
  OneShot<Outcome> done(process_);
  auto cancel =
      all->start_acquire(options, [this, done, parts, size, all](error_code ec, LockHandle handle) {
        if (!ec && parts->held != size) recorder_.wrong("granted without all of several");
        Outcome outcome;
        outcome.ec = ec;
        outcome.handle = std::move(handle);
        done.set(std::move(outcome));
      });
  if (how == 1) {
    const auto when = process_.now() + world_.between({}, work_.longest_hold * 4);
    process_.call_at(when, [cancel = std::move(cancel)] { cancel(); });
  }
  return done;
}

// As `dlock status` and `dlock list` do, now and then.
asio::awaitable<void> Client::look_around() {
  while (!ends()) {
    co_await sleep_until(process_, process_.now() + world_.between(milliseconds(50), seconds(2)));
    if (ends()) break;
    const auto failure = co_await store_->connected();
    if (failure.error) continue;
    const auto deadline = process_.now() + seconds(1);
    if (work_.permits != 0) {
      auto name = work_.locks[world_.below(work_.locks.size())];
      co_await store_->backend().inspect_semaphore(std::move(name), deadline);
    } else if (world_.chance(0.3)) {
      auto name = work_.locks[world_.below(work_.locks.size())];
      co_await break_lock(std::move(name), deadline);
    } else if (world_.chance(0.5)) {
      auto name = work_.locks[world_.below(work_.locks.size())];
      co_await store_->backend().inspect(std::move(name), deadline);
    } else {
      std::string prefix;
      co_await store_->backend().list(std::move(prefix), deadline);
    }
  }
}

// As `dlock break` does: a holder that runs is told.
asio::awaitable<void> Client::break_lock(std::string lock, TimePoint deadline) {
  if (!store_->backend().capabilities().can_evict) co_return;
  const auto status = co_await store_->backend().inspect(lock, deadline);
  if (!status.value || !status.value->held || !status.value->token) co_return;
  const auto owner = status.value->owner ? status.value->owner->id : std::string();
  const auto begun = world_.now();
  breaking_until_ = kNever;
  const auto failure = co_await store_->backend().evict(lock, *status.value->token, deadline);
  // Whatever the answer: a repetition says that there is nothing, after the first try did it; and
  // what was not answered may still be on its way.
  const auto by = world_.now() + (failure.error ? kLate : Duration::zero());
  // Where a token comes after its lock (Memcached), the store says whom it struck.
  if (store_->backend().capabilities().wake_up != WakeUp::poll) {
    recorder_.broken(lock, owner, begun, by, !failure.error);
  }
  breaking_until_ = world_.now() + kLate;
}

OneShot<Client::Outcome> Client::want(const std::string& actor, const std::string& lock,
                                      LetterPtr letter) {
  core::Acquisition::Request request;
  request.name = lock;
  if (letter) {
    request.adoption =
        std::make_shared<const Adoption>(core::GrantText::read(letter->text).adoption());
  }
  const auto& settings = store_->setup().settings;
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
  auto acquisition = std::make_shared<core::Acquisition>(
      store_, request, [this, done, actor, lock, letter](error_code ec, LockHandle handle) {
        Outcome outcome;
        outcome.ec = ec;
        if (!ec) {
          outcome.told = std::make_shared<Told>();
          outcome.grant =
              recorder_.granted(process_, actor, lock, core::HandleAccess::hold(handle));
          if (work_.mail != nullptr && process_.is_alive()) {
            const auto& owner_id = recorder_.owner_of(outcome.grant);
            work_.mail->granted(lock, handle.token().value_or(0), owner_id, letter);
          }
          handle.on_state(
              [this, told = outcome.told, grant = outcome.grant](HandleState state, LossReason) {
                if (state != HandleState::lost) return;
                if (!told->noticed || told->callbacks > 0) recorder_.told_lost(process_, grant);
                told->noticed = true;
                ++told->callbacks;
              });
        }
        outcome.handle = std::move(handle);
        done.set(std::move(outcome));
      });
  if (how == 3) {
    const auto when = process_.now() + world_.between({}, work_.longest_hold * 4);
    process_.call_at(when, [weak = std::weak_ptr(acquisition)] {
      if (const auto alive = weak.lock()) alive->cancel();
    });
  }
  store_->acquire(std::move(acquisition));
  return done;
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
    if (!held.told->noticed) recorder_.told_lost(process_, held.grant);
    held.told->noticed = true;
  } else {
    recorder_.releasing(process_, held.grant);
  }
  if (world_.chance(0.3)) co_return;  // the handle's destructor gives it back
  OneShot<bool> done(process_);
  held.handle.start_release([done](error_code) { done.set(true); });
  co_await done.get_until(kNever);
}

}  // namespace dlock::simulation
