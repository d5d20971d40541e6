// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/zookeeper/error.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

using std::chrono::milliseconds;

namespace {

/// Watches that are requested at once after a new connection. The C client would send them in one
/// packet. 14,000 watches exceed a server's limit (jute.maxbuffer): it closes the connection, and
/// does so each time.
constexpr std::size_t kWatchesAtOnce = 512;
/// Sessions that end as soon as they are made are made so often.
constexpr milliseconds kBetweenSessions{1600};
/// How long a newcomer tries, and after that the old session.
constexpr milliseconds kNewcomerPatience{2000};
constexpr milliseconds kDoubtAgain{5000};
/// How long the start of a session waits for the password file.
constexpr milliseconds kForPassword{1000};

Failure unresolved(const Resolved& resolved) {
  if (resolved.no_thread) return {Error::out_of_threads, ""};
  return {Error::unknown_host, resolved.no_answer ? "no answer from the name server in time" : ""};
}

}  // namespace

Session::Session(Env& env, Settings settings, Library& library, EventSink& sink)
    : env_(env), settings_(std::move(settings)), library_(library), sink_(sink) {}

Session::~Session() { stop_timers(); }

void Session::stop_timers() noexcept {
  env_.cancel(std::exchange(beat_timer_, 0));
  env_.cancel(std::exchange(lookup_timer_, 0));
  env_.cancel(std::exchange(doubt_timer_, 0));
}

asio::awaitable<Failure> Session::open(TimePoint deadline) {
  const auto self = shared_from_this();
  if (!client_) {
    resolver_ = std::make_shared<Resolver>(env_, settings_.endpoints);
    auto resolved = co_await resolver_->run(deadline);
    resolver_ = nullptr;
    if (closed_) co_return Failure{Error::closed, ""};
    if (resolved.addresses.empty()) co_return unresolved(resolved);
    if (number_ > 0)
      co_await password_read(std::min<TimePoint>(deadline, env_.now() + kForPassword));
    if (closed_) co_return Failure{Error::closed, ""};
    addresses_ = std::move(resolved.addresses);
    authentication_failed_ = false;
    attempt_failed_ = false;
    if (!start_client()) {
      co_return Failure{Error::out_of_descriptors, std::generic_category().message(errno)};
    }
    look_up_again();
  }
  const bool up = co_await ready(deadline);
  if (up) co_return Failure{};
  if (closed_) co_return Failure{Error::closed, ""};
  if (authentication_failed_) co_return Failure{Error::authentication_failed, ""};
  co_return Failure{Error::not_connected, tried()};
}

Client::Options Session::client_options() const {
  return {addresses_, settings_.timeout, digest(), settings_.creator_acl, {}, tries_spent_};
}

std::string Session::digest() const {
  if (!settings_.password) return {};
  return settings_.username + ":" + settings_.password->value();
}

/// Reads the password file, if there is one, for the next session. `done` is called only if this
/// call begins the reading.
void Session::read_password(Job done) {
  const auto& password = settings_.password;
  if (!password || !password->has_file() || reading_password_) return;
  password->read_again(env_, [self = shared_from_this(), done = std::move(done)]() mutable {
    self->reading_password_ = false;
    if (!self->closed_) done();
  });
  reading_password_ = true;
}

asio::awaitable<void> Session::password_read(TimePoint deadline) {
  const auto& password = settings_.password;
  if (!password || !password->has_file() || reading_password_) co_return;
  OneShot<bool> done(env_);
  read_password([done] { done.set(true); });
  co_await done.get_until(deadline);
}

/// The node may belong to a new password. The present session keeps its own digest beside it: a new
/// session would cost every lock that is held.
void Session::on_access_denied() {
  read_password([this] {
    if (!client_ || digest_ == digest()) return;
    digest_ = digest();
    client_->authenticate(digest_);
  });
}

std::string Session::tried() const {
  const auto known = client_ ? client_->tried() : std::string();
  return "tried " + (known.empty() ? addresses_ : known);
}

bool Session::start_client() {
  rule_started_ = false;
  ++number_;
  started_ = env_.now();
  digest_ = digest();
  client_ = library_.make_client(env_, client_options(), *this);
  if (client_->start()) return true;
  client_.reset();
  return false;
}

void Session::stop_lookups() noexcept {
  if (resolver_) resolver_->stop();
  if (next_addresses_) next_addresses_->stop();
}

asio::awaitable<void> Session::close(TimePoint deadline, bool keeps_it) {
  const auto self = shared_from_this();
  closed_ = true;
  stop_lookups();
  if (keeps_it && client_) client_->abandon();
  co_await drop(deadline);
}

asio::awaitable<void> Session::drop(TimePoint deadline) {
  const auto self = shared_from_this();
  stop_timers();
  trust_session();
  tell_waiters();
  unset_.clear();
  asking_ = 0;
  for (auto& [path, watched] : watched_) {
    watched.asking = 0;
    watched.armed = false;
    watched.failed = true;
  }
  const auto client = std::exchange(client_, {});
  if (!client) co_return;
  OneShot<bool> done(env_);
  client->close([done] { done.set(true); });
  co_await done.get_until(deadline);
}

void Session::stop() {
  closed_ = true;
  stop_lookups();
  stop_timers();
  trust_session();
  client_.reset();
}

asio::awaitable<bool> Session::ready(TimePoint deadline) {
  const auto self = shared_from_this();
  while (!connected() && !closed_ && !authentication_failed_ && env_.now() < deadline) {
    OneShot<bool> up(env_);
    ready_waiters_.push_back(up);
    co_await up.get_until(deadline);
  }
  co_return is_ready(deadline);
}

void Session::tell_waiters() {
  for (const auto& waiter : std::exchange(ready_waiters_, {})) waiter.set(true);
}

Validity Session::validity() const noexcept { return {rule_.valid_until(), rule_.renew_at()}; }

asio::awaitable<Reply> Session::prove(TimePoint deadline) {
  auto pending = client_->prove(settings_.root);
  co_return co_await reply_until(std::move(pending), deadline);
}

Failure Session::link_failure() const {
  if (connected() || !attempt_failed_) return {};
  return {Error::not_connected, tried()};
}

std::string Session::pending_attempt() const {
  return connected() || !client_ ? std::string() : tried();
}

void Session::on_connected() {
  attempt_failed_ = false;
  env_.cancel(std::exchange(lookup_timer_, 0));
  trust_session();
  if (!rule_started_) {
    rule_started_ = true;
    rule_ = DeadlineRule(client_->created(), client_->session_timeout());
    last_answer_ = env_.now();
    if (announced_ && on_new) on_new();
  }
  ask_for_lost_watches();
  arm_beat(env_.now() + rule_.interval());
  tell_waiters();
  if (on_beat) on_beat();
  if (announced_) sink_.on_link_up();
}

// The client library would set all watches again automatically. It must forget them while it has no
// connection. The answers to the new requests report the changes meanwhile.
void Session::forget_watches() {
  unset_.clear();
  for (auto& [path, watched] : watched_) {
    client_->forget_watch(path);
    watched.armed = false;
    watched.failed = true;
  }
}

// The watches that the last connection did not set are requested first, then the others, the last
// set first. A renewal prolongs a claim only if its watch is set (see NodeClaim::unwatched_until).
// In a fixed order the same claims would be last at each reconnect, and would be lost.
void Session::ask_for_lost_watches() {
  std::vector<std::pair<std::uint64_t, const std::string*>> lost;
  for (const auto& [path, watched] : watched_) {
    if (!watched.failed) continue;
    const bool was_set = watched.set_number > sets_before_;
    lost.emplace_back(was_set ? sets_ - watched.set_number + 1 : 0, &path);
  }
  std::ranges::stable_sort(lost, {}, [](const auto& one) { return one.first; });
  for (const auto& [order, path] : lost) unset_.push_back(*path);
  sets_before_ = sets_;
  set_more_watches();
}

void Session::set_more_watches() {
  while (connected() && asking_ < kWatchesAtOnce && !unset_.empty()) {
    const auto path = std::move(unset_.front());
    unset_.pop_front();
    const auto entry = watched_.find(path);
    if (entry == watched_.end()) continue;
    if (entry->second.failed && entry->second.asking == 0) set_watch(path);
  }
}

void Session::set_watch_in_turn(const std::string& path) {
  if (watching(path)) return;
  watched_[path].failed = true;
  unset_.push_back(path);
  set_more_watches();
}

bool Session::watching(const std::string& path) const {
  const auto entry = watched_.find(path);
  return connected() && entry != watched_.end() &&
         (entry->second.armed || entry->second.asking > 0);
}

void Session::on_disconnected() {
  attempt_failed_ = true;
  read_password([] {});
  forget_watches();
  if (on_down) on_down();
  if (announced_) sink_.on_link_down({Error::connection_lost, tried()});
  look_up_again(Duration::zero());
  doubt_session_at(env_.now() + timeout());
}

// By our own clock the session is over then, and all its locks with it. But servers that were all
// away may know it still: so it is kept, unless they turn it away and let newcomers in. That is how
// a server behaves whose data was removed, or restored from an older copy: it never says that the
// session is over, since it does not know what we have seen.
void Session::doubt_session_at(TimePoint when) {
  env_.cancel(doubt_timer_);
  doubt_timer_ = env_.call_at(when, [this] {
    doubt_timer_ = 0;
    doubt_session();
  });
}

void Session::doubt_session() {
  if (closed_ || !client_ || connected()) return;
  const auto newcomer = std::exchange(newcomer_, {});
  const auto now = env_.now();
  if (newcomer) {
    const bool let_in = newcomer->connected();
    newcomer->close([] {});
    // Another server of the ensemble may accept the old session: it is tried once more.
    let_in_ = let_in;
    return doubt_session_at(now + (let_in ? kNewcomerPatience : kDoubtAgain));
  }
  if (std::exchange(let_in_, false)) return start_again();
  if (client_->turned_away()) {
    auto options = client_options();
    options.least_pause = kNewcomerPatience;
    newcomer_ = library_.make_client(env_, std::move(options), nobody_);
    if (!newcomer_->start()) newcomer_.reset();
  }
  doubt_session_at(now + (newcomer_ ? kNewcomerPatience : kDoubtAgain));
}

void Session::trust_session() {
  env_.cancel(std::exchange(doubt_timer_, 0));
  let_in_ = false;
  newcomer_.reset();
}

// The library's handle may not be closed from within a step of it.
void Session::on_session_over(bool authentication_failed) {
  authentication_failed_ = authentication_failed;
  if (authentication_failed) read_password([] {});
  asio::post(env_.executor(), [self = shared_from_this()] {
    if (!self->closed_) self->start_again();
  });
}

void Session::start_again() {
  const auto ended = std::exchange(client_, {});
  if (!ended) return;  // dropped meanwhile
  ended->close([] {});
  stop_timers();
  trust_session();
  const bool lasted = env_.now() >= started_ + kBetweenSessions;
  watched_.clear();
  last_gone_ = last_watch_;
  unset_.clear();
  asking_ = 0;
  if (authentication_failed_) {
    tell_waiters();
    sink_.on_warning(make_error_code(Error::authentication_failed).message());
  }
  if (lasted) {
    start_or_try_later();
  } else {
    ++number_;
    start_later(started_ + kBetweenSessions);
  }
  if (on_over) on_over();
  if (announced_) sink_.on_session_gone(LossReason::session_ended);
}

// A refused password is not tried again at once; and without a descriptor left, nothing can be.
void Session::start_or_try_later() {
  if (!authentication_failed_ && start_client()) return look_up_again();
  ++number_;
  start_later(env_.now() + kBetweenSessions);
}

void Session::start_later(TimePoint when) {
  env_.cancel(lookup_timer_);
  lookup_timer_ = env_.call_at(when, [this] {
    lookup_timer_ = 0;
    authentication_failed_ = false;
    start_or_try_later();
  });
}

void Session::on_answer(TimePoint sent, TimePoint received, bool committed) {
  last_answer_ = received;
  if (committed) {
    rule_.committed(sent, received);
  } else {
    rule_.answered(sent, received);
  }
}

void Session::arm_beat(TimePoint when) {
  env_.cancel(beat_timer_);
  beat_timer_ = env_.call_at(when, [this] {
    beat_timer_ = 0;
    beat();
  });
}

void Session::beat() {
  if (closed_ || !connected()) return;  // armed again by on_connected
  if (on_beat) on_beat();
  const auto now = env_.now();
  const auto due = waiting_ > 0 ? rule_.renew_at() : last_answer_ + rule_.interval();
  if (now < due) return arm_beat(due);
  if (waiting_ > 0) {
    client_->prove(settings_.root);
  } else {
    client_->exists(settings_.root);
  }
  arm_beat(now + rule_.interval());
}

void Session::look_up_again() {
  look_up_again(
      std::clamp<Duration>(settings_.timeout / 6, milliseconds(250), std::chrono::seconds(5)));
}

// Names may have moved while no server answers. Once connected, the next loss is soon enough.
void Session::look_up_again(Duration pause) {
  if (all_numeric(settings_.endpoints) || lookup_timer_ != 0) return;
  lookup_timer_ = env_.call_at(env_.now() + pause, [this] {
    lookup_timer_ = 0;
    if (closed_ || connected()) return;
    look_up_again();
    if (next_addresses_) return;
    next_addresses_ = std::make_shared<Resolver>(env_, settings_.endpoints);
    dlock::spawn(env_, look_up(shared_from_this(), next_addresses_));
  });
}

asio::awaitable<void> Session::look_up(std::shared_ptr<Session> self,
                                       std::shared_ptr<Resolver> resolver) {
  auto found = co_await resolver->run(self->env_.now() + std::chrono::seconds(10));
  self->next_addresses_ = nullptr;
  if (self->closed_ || found.addresses.empty()) co_return;
  // The servers whose names were not resolved in time may be where they were.
  if (found.is_partial()) found.addresses = united(found.addresses, self->addresses_);
  self->addresses_ = std::move(found.addresses);
  if (self->client_ && !self->connected()) self->client_->set_addresses(self->addresses_);
}

Session::Waiting::Waiting(std::shared_ptr<Session> session) : session_(std::move(session)) {
  ++session_->waiting_;
}

Session::Waiting::~Waiting() { --session_->waiting_; }

std::unique_ptr<Session::Watch> Session::watch(const std::string& path, OnWatch callback) {
  const auto id = ++last_watch_;
  const auto node = watched_.try_emplace(path).first;
  node->second.shares.emplace(id, std::move(callback));
  return std::make_unique<Watch>(shared_from_this(), node, id);
}

std::unique_ptr<Session::Watch> Session::watch_always(const std::string& path, OnWatch callback) {
  watched_[path].always = true;
  return watch(path, std::move(callback));
}

PendingReply Session::set_watch(const std::string& path) {
  auto& watched = watched_[path];
  if (!connected()) {
    watched.failed = true;  // asked with the next connection
    PendingReply none(env_);
    Reply lost;
    lost.rc = ZCONNECTIONLOSS;
    none.set(std::move(lost));
    return none;
  }
  auto pending = watched.always ? client_->exists_and_watch(path) : client_->get_and_watch(path);
  ++watched.asking;
  ++asking_;
  return pending;
}

void Session::on_watch(const std::string& path, WatchEvent event) {
  if (event == WatchEvent::children) {
    if (on_children) on_children(path);
    return;
  }
  const auto entry = watched_.find(path);
  if (entry == watched_.end()) {  // perhaps a node whose children were watched
    if (event == WatchEvent::deleted && on_children) on_children(path);
    return;
  }
  // A callback may drop or add some.
  const auto shares = entry->second.shares;
  const bool answer = is_set(event) || event == WatchEvent::absent || event == WatchEvent::failed;
  if (answer && entry->second.asking > 0) {
    --entry->second.asking;
    --asking_;
  }
  entry->second.armed = is_set(event);
  if (is_set(event)) entry->second.set_number = ++sets_;
  entry->second.failed = event == WatchEvent::failed;
  for (const auto& [id, callback] : shares) callback(event);
  if (const auto again = watched_.find(path); again != watched_.end()) drop_if_unused(again);
  if (answer) set_more_watches();
}

void Session::unwatch(WatchedNodes::iterator node, std::uint64_t id) {
  if (id <= last_gone_ || node->second.shares.erase(id) == 0) return;
  drop_if_unused(node);
}

void Session::drop_if_unused(WatchedNodes::iterator entry) {
  if (!entry->second.shares.empty() || entry->second.asking > 0) return;
  if (entry->second.armed && connected()) client_->forget_watch(entry->first);
  watched_.erase(entry);
}

}  // namespace dlock::zookeeper
