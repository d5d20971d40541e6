// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/link.hpp"

#include <algorithm>

#include "backends/redis/error.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLongestAttempt{5};

/// Returns whether the failure may pass when a file is replaced. A password or a certificate
/// changes on the server and on the client, one after the other.
bool is_about_files(const DialSettings& settings, const Failure& failure) {
  if (failure.error == Error::authentication_failed) {
    return settings.password && settings.password->has_file();
  }
  return settings.tls &&
         (failure.error == Error::tls_failed || failure.error == Error::configuration);
}

}  // namespace

Link::Link(Env& env, std::shared_ptr<const DialSettings> settings, Listener& listener)
    : env_(env), settings_(std::move(settings)), listener_(listener), patience_(kLongestAttempt) {}

asio::awaitable<Failure> Link::open(TimePoint deadline) {
  const auto self = shared_from_this();
  if (stopped_) co_return Failure{Error::closed, ""};
  if (!life_) {
    // Shorter than the caller's deadline, so that the failure of a silent port can still be
    // reported.
    patience_ =
        std::clamp<Duration>((deadline - env_.now()) * 3 / 4, milliseconds(10), kLongestAttempt);
    permanent_ = false;
    failure_ = {};  // the failure of an earlier life
    begin_life();
  }
  const bool connected = co_await ready(deadline);
  if (connected) co_return Failure{};
  const auto why = failure();
  end_life();
  co_return why;
}

void Link::begin_life() {
  auto life = std::make_shared<Life>(env_);
  spawn(env_, run(shared_from_this(), life));
  life_ = std::move(life);
}

void Link::stop() {
  stopped_ = true;
  end_life();
  tell_waiters();
}

void Link::end_life() {
  if (auto life = std::exchange(life_, {})) {
    life->over = true;
    life->stop.notify();
    life->dialling->stop();
    last_life_ = std::move(life);
  }
  if (auto connection = std::exchange(connection_, {})) connection->close({Error::closed, ""});
}

asio::awaitable<void> Link::stopped(TimePoint deadline) {
  const auto life = last_life_;
  if (life) co_await life->ended.get_until(deadline);
}

asio::awaitable<bool> Link::ready(TimePoint deadline) {
  const auto self = shared_from_this();
  while (!up() && !permanent_ && !stopped_ && env_.now() < deadline) {
    OneShot<bool> told(env_);
    waiters_.push_back(told);
    co_await told.get_until(deadline);
  }
  co_return up() && !stopped_;
}

void Link::tell_waiters() {
  for (const auto& waiter : std::exchange(waiters_, {})) waiter.set(true);
}

Failure Link::failure() const {
  if (stopped_) return {Error::closed, ""};
  if (failure_.error) return failure_;
  return {Error::not_connected, settings_->address() + ": no answer in time"};
}

std::string Link::pending_attempt() const {
  if (up()) return {};
  if (failure_.error) return failure_.text;
  return settings_->address() +
         (settings_->tls ? ": no answer; does the port speak TLS?" : ": no answer");
}

asio::awaitable<void> Link::inspect_again(TimePoint deadline) {
  if (!up()) co_return;
  const auto self = shared_from_this();
  const auto asked = connection_;
  auto inspected = co_await inspect_server(env_, asked, deadline);
  // Another connection has been inspected since.
  if (inspected.failure.error || connection_ != asked || !up()) co_return;
  const auto change = compare(facts_, inspected.facts);
  facts_ = std::move(inspected.facts);
  listener_.on_inspected(facts_, change);
}

asio::awaitable<Link::Attempt> Link::attempt(std::shared_ptr<Life> life) {
  Attempt made;
  const auto deadline = env_.now() + patience_;
  auto dialled = co_await dial(env_, settings_, true, life->dialling, deadline);
  made.failure = std::move(dialled.failure);
  made.permanent = dialled.permanent;
  if (!dialled.connection) co_return made;
  auto inspected = co_await inspect_server(env_, dialled.connection, deadline);
  made.failure = std::move(inspected.failure);
  made.permanent = inspected.permanent;
  if (made.failure.error || life->over) {
    dialled.connection->close({Error::closed, ""});
    co_return made;
  }
  const auto change = compare(facts_, inspected.facts);
  const bool told = facts_.info_known && inspected.facts.info_known;
  const bool same_run = told && facts_.run_id == inspected.facts.run_id;
  // Another run does not have the old connections: it assigns their ids to other clients.
  if (!old_clients_.empty() && (same_run || !told)) {
    bool killed = false;
    if (same_run) killed = co_await kill_clients(dialled.connection, old_clients_, deadline);
    if (!killed && !life->over && dialled.connection->is_open()) listener_.on_old_connection_kept();
  }
  if (life->over || !dialled.connection->is_open()) {
    made.failure = dialled.connection->failure();
    dialled.connection->close({Error::closed, ""});
    co_return made;
  }
  old_clients_.clear();
  client_ = inspected.client_id.value_or(0);
  facts_ = std::move(inspected.facts);
  listener_.on_inspected(facts_, change);
  made.connection = std::move(dialled.connection);
  co_return made;
}

// No exception may end the loop during its life: the link would stay down, and no listener would be
// notified.
asio::awaitable<void> Link::run(std::shared_ptr<Link> self, std::shared_ptr<Life> life) {
  while (!life->over) {
    std::exception_ptr thrown;
    try {
      co_await self->turn(life);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) self->give_up_turn(*life, thrown);
  }
  life->ended.set(true);
}

/// One try, and what it made until its end.
asio::awaitable<void> Link::turn(std::shared_ptr<Life> life) {
  if (pace_.next() > env_.now()) co_await life->stop.wait_until(pace_.next());
  if (life->over) co_return;
  pace_.begin(env_.now());
  auto made = co_await attempt(life);
  if (life->over) co_return;
  if (!made.connection) {
    failure_ = std::move(made.failure);
    permanent_ = made.permanent;
    if (was_up_ && is_about_files(*settings_, failure_)) {
      permanent_ = false;
      if (!std::exchange(refusal_told_, true)) listener_.on_login_refused(failure_);
    }
    if (permanent_) tell_waiters();
    pace_.failed(env_.now(), env_.random());
    co_return;
  }
  const auto since = env_.now();
  co_await stay_up(life, std::move(made.connection));
  pace_.ended(env_.now(), env_.now() - since, env_.random());
}

void Link::give_up_turn(Life& life, const std::exception_ptr& thrown) {
  end_if_out_of_memory(thrown);
  pace_.failed(env_.now(), env_.random());
  if (life.over) return;
  failure_ = failure_of(thrown);
  permanent_ = false;
  // Cancels the try, so that it does not run beside the next one.
  life.dialling->cut();
  if (connection_) went_down();
}

asio::awaitable<void> Link::stay_up(std::shared_ptr<Life> life,
                                    std::shared_ptr<Connection> connection) {
  const auto end = std::make_shared<Signal>(env_);
  connection->on_end = [end] { end->notify(); };
  connection_ = connection;
  was_up_ = true;
  refusal_told_ = false;
  permanent_ = false;
  failure_ = {};
  if (up()) {
    tell_waiters();
    listener_.on_up();
  }
  while (connection->is_open() && !life->over) {
    co_await end->wait_until(kNever);
  }
  if (life->over) co_return;
  failure_ = connection->failure();
  failure_.text = settings_->address() + (failure_.text.empty() ? "" : ": ") + failure_.text;
  went_down();
}

void Link::went_down() {
  const auto connection = std::exchange(connection_, {});
  connection->close(failure_);
  old_clients_.push_back(client_);
  listener_.on_down(failure_);
}

}  // namespace dlock::redis
