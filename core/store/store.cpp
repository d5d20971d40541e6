// SPDX-License-Identifier: Apache-2.0
#include "core/store/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/config/requirements.hpp"
#include "core/loop/deadline.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/duration.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core {
namespace {

/// For how long a withdrawal is tried while the store does not answer.
constexpr std::chrono::minutes kLongestOutage{10};
/// How often a store is asked again, at most, whether it still lacks what it was refused for.
constexpr std::chrono::seconds kBetweenLooks{1};

using std::chrono::milliseconds;

Owner owner_of(const std::string& app) {
  auto owner = this_process();
  owner.app = app;
  return owner;
}

/// Names whose last token is remembered: some 10 MB at most.
constexpr std::size_t kMostTokens = 50'000;

/// A semaphore and a lock of one name have separate tokens. No name contains a line break.
std::string token_key(const Acquisition::Request& request) {
  return request.permits == 0 ? request.name : "semaphore\n" + request.name;
}

/// How long a release is waited for after the lock's local deadline, and after the last answer to
/// another release. A store that works has answered by then; at another the lock expires.
constexpr milliseconds kLostPatience{250};

constexpr std::chrono::hours kLongestHeadStart{24};

Failure wrong_head_start(const Acquisition::Request& request) {
  const auto wrong = [&](std::string_view why) {
    return make_failure(errc::invalid_argument,
                        fmt::format("head_start: {} ms {}", request.head_start.count(), why));
  };
  if (request.head_start.count() < 0) {
    return wrong("would let others pass; it is 0 or more, and who may wait longer sets none");
  }
  if (request.head_start > kLongestHeadStart) return wrong("is more than a day; write 24h or less");
  if (request.mode == Mode::shared) return wrong("is of exclusive locks only; leave it out");
  return {};
}

Failure invalid_lease(std::string text) {
  return make_failure(errc::invalid_argument, std::move(text));
}

/// Checks a lease per lock. `lease` is the part of `asked` that a plan allows.
Failure refused_claim_lease(const Capabilities& capabilities, milliseconds asked,
                            milliseconds lease) {
  if (lease >= capabilities.shortest_lease && asked <= capabilities.longest_lease) return {};
  return invalid_lease(fmt::format("lease {}: this store gives {} to {}", format_duration(asked),
                                   format_duration(capabilities.shortest_lease),
                                   format_duration(capabilities.longest_lease)));
}

/// Checks a lease that belongs to the session.
Failure refused_session_lease(const Capabilities& capabilities, const Acquisition::Request& request,
                              std::string_view option) {
  const auto session = format_duration(capabilities.lease);
  if (request.lease && request.lease->count() <= 0) {
    return invalid_lease(fmt::format("lease {}: it must be positive; on this store {} or more",
                                     format_duration(*request.lease), session));
  }
  if (request.lease && *request.lease < capabilities.lease) {
    return invalid_lease(
        fmt::format("lease {0}: a dead holder's session lasts {1} here; set {2} of the store "
                    "to {0} or less",
                    format_duration(*request.lease), session, option));
  }
  if (!request.max_lease || *request.max_lease >= capabilities.lease) return {};
  return make_failure(
      errc::config_unsafe,
      fmt::format("the plan allows leases of {0} at most, a session of this store lasts {1}; "
                  "set {2} of the store to {0} or less",
                  format_duration(*request.max_lease), session, option));
}

/// A requested lease is never changed: the caller relies on it.
Failure refused_lease(const Capabilities& capabilities, const Acquisition::Request& request,
                      milliseconds lease, std::string_view option) {
  switch (capabilities.lease_scope) {
    case LeaseScope::claim:
      return refused_claim_lease(capabilities, request.lease.value_or(lease), lease);
    case LeaseScope::session:
      return refused_session_lease(capabilities, request, option);
    case LeaseScope::none:
      if (!request.lease || request.lease->count() > 0) return {};
      return invalid_lease(
          fmt::format("lease {}: it must be positive; on this store 1ms or more (it has no "
                      "lease: a dead holder's lock is free at once)",
                      format_duration(*request.lease)));
  }
  return {};
}

Failure refused_margin(const Capabilities& capabilities, milliseconds lease, Duration margin) {
  if (capabilities.lease_scope == LeaseScope::none || margin < lease) return {};
  return make_failure(
      errc::config_invalid,
      fmt::format("drift_margin: {} leave nothing of a lease of {}; write less, or leave it "
                  "out (1 % of the lease, at least 20ms)",
                  format_duration(std::chrono::duration_cast<milliseconds>(margin)),
                  format_duration(lease)));
}

/// Whose end is to be waited for.
std::shared_ptr<Hold> holder_of(const std::shared_ptr<Hold>& hold) {
  const auto& dependency = hold->dependency();
  auto holder = dependency ? dependency->holder() : nullptr;
  return holder ? holder : hold;
}

}  // namespace

Store::Store(Host& host, Setup setup)
    : host_(host),
      env_(host.env()),
      setup_(std::move(setup)),
      tasks_(env_),
      connecting_(env_),
      backend_(setup_.descriptor->create(setup_.options, env_, *this)),
      renewer_(std::make_shared<Renewer>(
          env_, *backend_, tasks_,
          [this](const ClaimPtr& claim) {
            claim->mark_lost();
            withdraw(claim, std::nullopt);
          },
          [this](const auto& hold, const ClaimPtr& claim) { free_when_left(hold, claim); })),
      uses_(std::make_shared<UseLimits>(
          env_, setup_.settings.release_timeout,
          [this](const std::shared_ptr<Hold>& hold, bool is_left) { take_back(hold, is_left); })),
      releaser_(env_, *backend_, tasks_),
      tokens_(kMostTokens),
      policy_(make_store_policy(*this)),
      me_(owner_of(setup_.options.app)) {}

void Store::acquire(std::shared_ptr<Acquisition> acquisition) {
  // The newest has the highest number, as a rule.
  acquisitions_.emplace_hint(acquisitions_.end(), acquisition->number(), acquisition);
  if (closed_) acquisition->close();
  tasks_.spawn(acquisition->run());
}

void Store::forget(Acquisition& acquisition) { acquisitions_.erase(acquisition.number()); }

void Store::receive(std::shared_ptr<BackgroundWork> background, asio::awaitable<void> work) {
  if (closed_) background->close();
  background_.push_back(std::move(background));
  tasks_.spawn(std::move(work));
}

void Store::keep(std::shared_ptr<BackgroundWork> background) {
  background_.push_back(background);
  if (closed_) background->close();
}

asio::awaitable<Failure> Store::connected(std::optional<milliseconds> timeout,
                                          std::optional<milliseconds> patience) {
  if (closed_) co_return make_failure(errc::closed, "");
  if (link_ == Link::up) co_return Failure{};
  const auto self = shared_from_this();
  auto waiter = std::make_shared<Signal>(env_);
  connect_waiters_.push_back(waiter);
  if (link_ == Link::never) {
    link_ = Link::connecting;
    const auto longest = setup_.settings.connect_timeout;
    connecting_.spawn(connect(std::min(patience.value_or(longest), longest)));
  }
  // Named first: g++ 12 evaluates both sides of a ?: within an expression that awaits.
  const auto until = timeout ? deadline_after(env_.now(), *timeout) : kNever;
  const bool told = co_await waiter->wait_until(until);
  if (told) co_return connect_failure_;
  auto text = backend_->pending_attempt();
  if (text.empty()) text = fmt::format("not reached in {} ms", timeout->count());
  co_return with_address(make_failure(errc::unavailable, std::move(text)));
}

Trouble Store::trouble() const {
  if (link_down_.failure.error) return {with_address(link_down_.failure), link_down_.since};
  return {with_address(backend_->link_failure()), TimePoint::min()};
}

std::string Store::no_answer_words() const {
  auto silence = make_failure(errc::unavailable, std::string(kNoAnswer));
  if (const auto why = backend_->pending_attempt(); !why.empty()) silence.text += ": " + why;
  return with_address(std::move(silence)).text;
}

// Adds the server addresses to the message; `no answer in time` does not say which server.
Failure Store::with_address(Failure failure) const {
  const auto& endpoints = setup_.options.endpoints;
  const auto what = portable(failure.error);
  const bool about_the_server = what == errc::unavailable || what == errc::access_denied ||
                                what == errc::protocol || what == errc::not_supported;
  if (!failure.error || !about_the_server || endpoints.empty()) return failure;
  std::string names;
  for (const auto& [host, port] : endpoints) {
    if (port == 0 || failure.text.find(fmt::format(":{}", port)) != std::string::npos) {
      return failure;
    }
    const bool v6 = host.find(':') != std::string::npos;
    names += fmt::format("{}{}{}{}:{}", names.empty() ? "" : ", ", v6 ? "[" : "", host,
                         v6 ? "]" : "", port);
  }
  failure.text += fmt::format("{}at {}", failure.text.empty() ? "" : "; ", names);
  return failure;
}

asio::awaitable<Failure> Store::ready(std::vector<std::string> route_requires,
                                      std::optional<milliseconds> patience) {
  // A caller with more patience may be connecting already. Waits a little longer than this call's
  // own attempt would need, so that the cause is known.
  std::optional<milliseconds> timeout;
  if (patience) timeout = *patience + milliseconds(200);
  auto failure = co_await connected(timeout, patience);
  if (failure.error) co_return failure;
  failure = unmet_requirement(route_requires);
  // The operator may have changed what the store was refused for.
  if (!failure.error || env_.now() < look_again_at_) co_return failure;
  co_await look_again();
  co_return unmet_requirement(route_requires);
}

asio::awaitable<void> Store::look_again() {
  const auto self = shared_from_this();
  look_again_at_ = env_.now() + kBetweenLooks;
  co_await backend_->look_again(env_.now() + request_timeout());
}

asio::awaitable<void> Store::connect(milliseconds patience) {
  const auto self = shared_from_this();
  try {
    auto failure = co_await backend_->connect(env_.now() + patience);
    connect_failure_ = with_address(std::move(failure));
    if (!connect_failure_.error) co_await policy_->on_connected();
    if (closed_) connect_failure_ = make_failure(errc::closed, "");
    if (!connect_failure_.error) warn_once_of_shortfalls();
    if (!connect_failure_.error) warn_of_unused_cache();
  } catch (const std::exception& error) {
    connect_failure_ = failure_of(error);
  }
  link_ = connect_failure_.error ? Link::never : Link::up;
  look_again_at_ = env_.now() + kBetweenLooks;
  if (link_ == Link::up) set_holder_watches();
  for (const auto& waiter : std::exchange(connect_waiters_, {})) waiter->notify();
}

Failure Store::unmet_requirement(const std::vector<std::string>& route_requires) const {
  const auto& capabilities = backend_->capabilities();
  for (const auto* required : {&route_requires, &setup_.settings.require}) {
    const auto unmet = std::find_if(required->begin(), required->end(),
                                    [&](const auto& what) { return !meets(capabilities, what); });
    if (unmet == required->end()) continue;
    std::string text =
        fmt::format("require: {}, but {} store '{}' offers {}", *unmet, setup_.descriptor->name,
                    name(), offered_instead(capabilities, *unmet));
    for (const auto& shortfall : capabilities.shortfalls) {
      text += fmt::format("; {}: {}", shortfall.reason, shortfall.remedy);
    }
    return make_failure(errc::config_unsafe, std::move(text));
  }
  return {};
}

void Store::warn_once_of_shortfalls() {
  const auto& capabilities = backend_->capabilities();
  if (warned_ || capabilities.shortfalls.empty() || !setup_.settings.require.empty()) return;
  if (setup_.settings.accepts_best_effort) return;
  warned_ = true;
  host_.warn_once(
      fmt::format("store '{0}' promises {1} only (`dlock doctor` says why); accept: {1} ends this "
                  "warning",
                  name(), to_string(capabilities.guarantee)));
}

void Store::warn_of_unused_cache() {
  if (setup_.settings.cache.count() == 0 || backend_->capabilities().can_tell_contention) return;
  host_.log(LogLevel::warning,
            fmt::format("store '{}': cache is not used: the store does not notify at present "
                        "when another client asks for a lock",
                        name()));
}

Duration Store::lease_of(const std::optional<milliseconds>& asked,
                         const std::optional<milliseconds>& most) const {
  const auto& capabilities = backend_->capabilities();
  if (capabilities.lease_scope != LeaseScope::claim) return capabilities.lease;
  // Clamped, so that an absurd value cannot overflow the clock; it is refused all the same.
  constexpr milliseconds kAbsurd = std::chrono::hours(24 * 365 * 100);
  const auto lease = std::clamp(asked.value_or(setup_.settings.lease.value_or(capabilities.lease)),
                                -kAbsurd, kAbsurd);
  return most ? std::min(lease, *most) : lease;
}

Failure Store::make_claim(const Acquisition::Request& request, ClaimPtr& claim) {
  const auto& capabilities = backend_->capabilities();
  const auto lease =
      std::chrono::duration_cast<milliseconds>(lease_of(request.lease, request.max_lease));
  auto refused = refused_lease(capabilities, request, lease, setup_.descriptor->lease_option);
  if (!refused.error) refused = refused_margin(capabilities, lease, margin(request));
  if (!refused.error) refused = refused_wishes(request);
  if (refused.error) return refused;
  ClaimRequest wanted;
  wanted.name = request.name;
  wanted.mode = request.mode;
  wanted.owner = me_;
  wanted.owner.id = make_uuid(env_);
  wanted.lease = lease;
  wanted.queue = !request.limits.once;
  wanted.min_token = request.min_token;
  wanted.tell_contention =
      (request.tell_contention || request.must_tell_contention) && capabilities.can_tell_contention;
  wanted.tell_asked = request.revocable;
  if (wanted.queue) wanted.max_queue = request.max_queue;
  if (wanted.queue) wanted.head_start = request.head_start;
  wanted.permits = request.permits;
  wanted.limit = request.limit;
  wanted.adoption = request.adoption;
  if (request.permits == 0) policy_of(request).prepare(wanted);
  // A counter that the store may have lost continues from the last value that this process knows.
  if (capabilities.token == TokenStrength::time_seeded) {
    wanted.min_token = std::max(wanted.min_token, tokens_.find(token_key(request)).value_or(0));
  }
  claim = backend_->make_claim(std::move(wanted));
  return {};
}

// An option that the store cannot honour is refused, because the caller relies on it.
Failure Store::refused_wishes(const Acquisition::Request& request) const {
  const auto& capabilities = backend_->capabilities();
  const auto refuse = [this](std::string_view option, std::string_view why) {
    return make_failure(errc::invalid_argument,
                        fmt::format("{}: {} store '{}' {}; leave it out, or route this name to a "
                                    "store that does (`dlock doctor` says what each can do)",
                                    option, setup_.descriptor->name, name(), why));
  };
  const char* const wish = request.max_queue                 ? "max_queue"
                           : request.head_start.count() != 0 ? "head_start"
                           : request.must_tell_contention    ? "tell_contention"
                           : request.revocable               ? "revocable"
                                                             : nullptr;
  if (request.permits != 0 && wish != nullptr) {
    return make_failure(
        errc::invalid_argument,
        fmt::format("{}: of locks only, not of a semaphore's permits; leave it out", wish));
  }
  if (request.max_queue && !request.limits.once && !capabilities.can_bound_queue) {
    return refuse("max_queue", "has no queue that it could count");
  }
  if (request.head_start.count() != 0) {
    if (auto wrong = wrong_head_start(request); wrong.error) return wrong;
    if (!capabilities.can_head_start && !request.limits.once) {
      return refuse("head_start", "does not let a waiter pass earlier ones");
    }
  }
  if (request.must_tell_contention && !capabilities.can_tell_contention) {
    return refuse("tell_contention", "does not notify a holder that another client asks");
  }
  if (request.revocable && !capabilities.can_ask) {
    return refuse("revocable", "does not notify a holder of requests for its lock");
  }
  return {};
}

Duration Store::margin(const Acquisition::Request& request) const {
  if (backend_->capabilities().lease_scope == LeaseScope::none) return Duration::zero();
  if (setup_.settings.drift_margin) return *setup_.settings.drift_margin;
  return default_drift_margin(lease_of(request.lease, request.max_lease));
}

// Long enough for a slow store, short enough that a renewal can be tried again within its lease.
Duration Store::request_timeout() const {
  if (setup_.settings.request_timeout) return *setup_.settings.request_timeout;
  const auto& capabilities = backend_->capabilities();
  if (capabilities.lease_scope == LeaseScope::none) return std::chrono::seconds(5);
  return std::clamp<Duration>(lease_of(std::nullopt) / 3, std::chrono::seconds(1),
                              std::chrono::seconds(5));
}

Failure Store::refused_kind(const Acquisition::Request& request) const {
  if (request.adoption) return refused_adoption();
  return request.permits == 0 ? refused_mode(request.mode) : refused_permits();
}

Failure Store::refused_permits() const {
  const bool has_them =
      setup_.descriptor->has_permits && (link_ != Link::up || backend_->capabilities().permits);
  if (has_them) return {};
  return make_failure(
      errc::invalid_argument,
      fmt::format("{} store '{}' has no semaphores: {}; route this name to a store that has them "
                  "(`require: semaphore` says so at the start)",
                  setup_.descriptor->name, name(), setup_.descriptor->why_no_permits));
}

Failure Store::refused_mode(Mode mode) const {
  const bool has_it = setup_.descriptor->has_shared_mode &&
                      (link_ != Link::up || backend_->capabilities().shared_mode);
  if (mode == Mode::exclusive || has_it) return {};
  return make_failure(
      errc::invalid_argument,
      fmt::format("mode shared: {} store '{}' has exclusive locks only; leave the mode out, or "
                  "route this name to a store with shared mode (zookeeper, redis, local, memory; "
                  "`require: shared` says so at the start)",
                  setup_.descriptor->name, name()));
}

Failure Store::refused_token(const Acquisition::Request& request, std::uint64_t token) const {
  if (token == 0 || token >= kTokenEnd) {
    return make_failure(
        errc::protocol,
        fmt::format("{} store '{}' granted token {}: a token is 1 or more and below 2^53. The "
                    "grant was released: the server is not such a store, or its data was "
                    "altered",
                    setup_.descriptor->name, name(), token));
  }
  const auto last = tokens_.find(token_key(request), request.mode);
  if (!last || token > *last || request.token_may_go_back) return {};
  return make_failure(
      errc::token_regressed,
      fmt::format(
          "{} store '{}' granted token {}, but this process had token {} before: the store "
          "has lost its data, was restored from an old copy, or its clock was set back. The "
          "grant was given back: resources that have seen {} would refuse its writes. Bring "
          "the store's data back; or, if no resource has seen the higher token, start "
          "this process again",
          setup_.descriptor->name, name(), token, *last, *last));
}

std::string Store::holder_words(const Acquisition::Request& request) const {
  if (request.permits != 0) return std::string(kTooFewPermits);
  for (const auto& hold : renewer_->holds()) {
    const auto& held = hold->identity();
    if (hold->is_given_away()) continue;
    if (held.name == request.name && held.permits == 0) return "this process itself holds it";
  }
  return std::string(kHeldByAnother);
}

std::shared_ptr<Hold> Store::hold(const ClaimPtr& claim, const ClaimAnswer& answer,
                                  const Acquisition::Request& request) {
  const auto drift = margin(request);
  if (answer.token) tokens_.raise(token_key(request), *answer.token, request.mode);
  auto hold = detail::make_recycled<Hold>(
      host_.shared_from_this(), weak_from_this(),
      Hold::Identity{request.name, name(), answer.token, claim->inheritable_descriptor(),
                     claim->request().mode, request.permits},
      claim, local_deadline(answer.validity, drift));
  renewer_->add(hold, claim, answer.validity,
                {backend_->capabilities().lease_scope, request_timeout(), drift,
                 lease_of(request.lease, request.max_lease)});
  if (claim->is_contended()) hold->note_contended();
  return hold;
}

ReleaseFsm::Limits Store::release_limits(TimePoint lease_over) const {
  return {request_timeout(), lease_over, std::nullopt, lease_of(std::nullopt) / 4};
}

void Store::release(const std::shared_ptr<Hold>& hold, Releaser::Done done) {
  if (const auto& dependency = hold->dependency()) done = dependency->on_release(std::move(done));
  const auto [claim, until] = renewer_->remove(*hold);
  if (!claim) {
    if (done) done(make_error_code(errc::lock_lost));
    return;
  }
  if (hold->is_inherited()) claim->mark_inherited();
  const bool session = backend_->capabilities().lease_scope == LeaseScope::session;
  const auto deadline = hold->promised();
  const Duration longest = setup_.settings.release_timeout;
  Releaser::Patience patience{longest, longest};
  if (deadline != kNever) {
    patience.silence = std::min(longest, std::max<Duration>(deadline - env_.now(), kLostPatience));
  }
  releaser_.start(claim, release_limits(session ? kNever : until), patience, deadline,
                  std::move(done));
}

void Store::downgrade(const std::shared_ptr<Hold>& hold, std::shared_ptr<Releaser::Done> done) {
  const auto claim = hold->claim();
  if (!claim || hold->state() == HandleState::lost || closed_) {
    return (*done)(make_error_code(closed_ ? errc::closed : errc::lock_lost));
  }
  if (claim->request().mode == Mode::shared) return (*done)({});
  // A hold that depends on a second lock is exclusive in both.
  if (hold->dependency() || refused_mode(Mode::shared).error) {
    return (*done)(make_error_code(errc::not_supported));
  }
  tasks_.spawn(downgrade_claim(hold, claim, std::move(done)));
}

asio::awaitable<void> Store::downgrade_claim(std::shared_ptr<Hold> hold, ClaimPtr claim,
                                             std::shared_ptr<Releaser::Done> done) {
  const auto self = shared_from_this();
  DowngradeAnswer answer;
  try {
    answer = co_await backend_->downgrade(claim, env_.now() + request_timeout());
  } catch (const std::exception& error) {
    answer.status = DowngradeStatus::unknown;
    answer.failure = failure_of(error);
  }
  (*done)(settle_downgrade(*hold, *claim, answer));
}

// A mode that is not known to be exclusive counts as shared, which is true in both cases.
error_code Store::settle_downgrade(Hold& hold, Claim& claim, const DowngradeAnswer& answer) {
  switch (answer.status) {
    case DowngradeStatus::shared:
      claim.mark_shared();
      hold.become_shared();
      return {};
    case DowngradeStatus::gone:
      renewer_->on_claim_gone(claim, answer.reason);
      return make_error_code(errc::lock_lost);
    case DowngradeStatus::failed:
      return make_error_code(errc::not_supported);
    case DowngradeStatus::unavailable:
    case DowngradeStatus::unknown:
      break;
  }
  hold.become_shared();
  return make_error_code(errc::unavailable);
}

void Store::withdraw(const ClaimPtr& claim, std::optional<TimePoint> last_unknown) {
  const bool per_claim = backend_->capabilities().lease_scope == LeaseScope::claim;
  auto limits = release_limits(per_claim ? env_.now() + claim->request().lease : kNever);
  if (last_unknown) {
    const auto lease = std::max<Duration>(
        std::max<Duration>(claim->request().lease, backend_->capabilities().lease),
        std::chrono::seconds(1));
    limits.late_copies_until = *last_unknown + lease;
    limits.search_pause = lease / 4;
  }
  const auto owed_until = claim->is_lost() ? env_.now() : per_claim ? limits.lease_over : kNever;
  // The lease of a request begins when the store executes it, and a stopped store has not yet.
  if (last_unknown) limits.lease_over = std::max(limits.lease_over, env_.now() + kLongestOutage);
  releaser_.start(claim, limits, {}, owed_until);
}

void Store::drop(const std::shared_ptr<Hold>& hold) {
  hold->become(HandleState::lost, LossReason::expired);
  const auto [claim, until] = renewer_->remove(*hold);
  if (!claim) return;
  claim->mark_lost();
  withdraw(claim, std::nullopt);
}

// As end_holds() does it. The lock delay, if any, keeps out others while the user still works.
void Store::take_back(const std::shared_ptr<Hold>& hold, bool is_left) {
  if (const auto claim = hold->claim(); claim && !is_left) claim->mark_lost();
  Releaser::Done nobody;
  if (const auto& dependency = hold->dependency();
      dependency && dependency->take_back(*hold, nobody)) {
    return;
  }
  release(hold, {});
}

void Store::retire(Hold& hold) {
  renewer_->remove(hold);
  hold.give_back();
}

void Store::on_link_up() {
  env_.cancel(std::exchange(out_of_reach_timer_, 0));
  link_down_ = {};
  renewer_->on_link_up();
  set_holder_watches();
}

void Store::on_link_down(const Failure& why) {
  const auto since = link_down_.failure.error ? link_down_.since : env_.now();
  link_down_ = {why, since};
  const bool refused = portable(why.error) == errc::access_denied;
  renewer_->on_link_down(refused ? LossReason::access_denied : LossReason::expired);
  if (out_of_reach_timer_ != 0) return;
  out_of_reach_timer_ = env_.call_at(env_.now() + setup_.settings.connect_timeout, [this, why] {
    out_of_reach_timer_ = 0;
    for (const auto& [number, acquisition] : Acquisitions(acquisitions_))
      acquisition->out_of_reach(why);
  });
}

void Store::watch_holder(const std::string& name, HolderWatches::Id id,
                         HolderWatches::Changed changed) {
  const bool is_first = watches_.add(name, id, changed);
  if (is_first && is_up()) backend_->watch_holder(name);
  changed();
}

void Store::unwatch_holder(const std::string& name, HolderWatches::Id id) noexcept {
  if (watches_.remove(name, id) && is_up()) backend_->unwatch_holder(name);
}

void Store::tell_holder_changed(const std::string& name) {
  if (is_up()) backend_->tell_holder_changed(name);
}

void Store::set_holder_watches() {
  for (const auto& name : watches_.names()) backend_->watch_holder(name);
  watches_.tell_all();
}

void Store::on_session_gone(LossReason why) { renewer_->on_session_gone(why); }

void Store::on_claim_gone(const ClaimPtr& claim, LossReason why) {
  renewer_->on_claim_gone(*claim, why);
}

void Store::on_claim_broken(const ClaimPtr& claim, const std::string& by) {
  renewer_->on_claim_broken(*claim, by);
}

// No other client may acquire the lock while the work under it continues.
void Store::free_when_left(const std::shared_ptr<Hold>& hold, const ClaimPtr& claim) {
  const auto& dependency = hold->dependency();
  if (dependency && !dependency->has_user()) return withdraw(claim, std::nullopt);
  const auto user = holder_of(hold);
  broken_.insert_or_assign(claim->number(), Broken{user, claim});
  user->when_left([self = weak_from_this(), number = claim->number()] {
    if (const auto store = self.lock()) store->free_broken(number);
  });
}

void Store::free_broken(std::uint64_t number) {
  const auto ended = broken_.extract(number);
  if (ended.empty() || backend_closed_) return;
  withdraw(ended.mapped().claim, std::nullopt);
  if (on_broken_freed_) on_broken_freed_();
}

void Store::on_contended(const ClaimPtr& claim) {
  claim->mark_contended();  // it may not have a hold yet
  const auto hold = renewer_->find(*claim);
  if (hold && hold->dependency()) hold->dependency()->on_contended();
  if (hold) holder_of(hold)->note_contended();
}

void Store::on_asked(const ClaimPtr& claim, const Revocation& how) {
  if (const auto hold = renewer_->find(*claim)) holder_of(hold)->note_asked(how);
}

void Store::on_capabilities_changed() {
  if (!backend_->capabilities().can_tell_contention) expect_contention();
  warned_ = false;
  report_shortfalls();
  warn_of_unused_cache();
}

// The store does not report contention any more, so that a request would not be noticed.
void Store::expect_contention() {
  for (const auto& hold : renewer_->holds()) {
    if (hold->dependency()) hold->dependency()->on_contended();
  }
}

void Store::report_shortfalls() {
  warn_once_of_shortfalls();
  if (const auto unmet = unmet_requirement(setup_.required_by_routes); unmet.error) {
    host_.log(LogLevel::error, unmet.text);
  }
}

void Store::on_warning(std::string_view text) {
  host_.log(LogLevel::warning, fmt::format("store '{}': {}", name(), text));
}

asio::awaitable<StoreReport> Store::report(std::optional<milliseconds> timeout) {
  StoreReport report;
  report.name = name();
  report.backend = std::string(setup_.descriptor->name);
  const bool was_up = link_ == Link::up;
  auto failure = co_await connected(timeout);
  report.reached = !failure.error;
  if (was_up && report.reached) co_await look_again();
  if (report.reached) {
    report.capabilities = backend_->capabilities();
    failure = unmet_requirement(setup_.required_by_routes);
  }
  report.error = failure.error;
  report.message = failure.text;
  co_return report;
}

void Store::end() noexcept {
  uses_->stop();
  broken_.clear();
  while (const auto hold = renewer_->first()) {
    hold->become(HandleState::lost, LossReason::closed);
    renewer_->remove(*hold);
  }
  // A coroutine that waits for an answer keeps the store, and with it the backend, for ever.
  if (link_ != Link::never && !backend_closed_) backend_.reset();
}

// Stops the work under the locks, renews them until it has stopped, then releases them.
asio::awaitable<void> Store::end_holds() {
  struct Ending {
    explicit Ending(Env& env) : news(env) {}
    Signal news;
    std::size_t awaited = 0;
  };
  auto ending = std::make_shared<Ending>(env_);
  ending->awaited = broken_.size();
  on_broken_freed_ = [ending] {
    --ending->awaited;
    ending->news.notify();
  };
  for (const auto& hold : renewer_->holds()) {
    const auto holder = holder_of(hold);
    const auto audience = holder->audience();
    hold->become(HandleState::lost, LossReason::closed);
    if (audience == Hold::Audience::nobody) {
      release(hold, {});
      continue;
    }
    ++ending->awaited;
    Job give_back = [ending, self = weak_from_this(), ended = std::weak_ptr(hold)] {
      const auto store = self.lock();
      const auto what = ended.lock();
      if (store && what) store->release(what, {});
      --ending->awaited;
      ending->news.notify();
    };
    if (audience == Hold::Audience::owner) {
      holder->when_left(std::move(give_back));
    } else {
      holder->when_told(std::move(give_back));
    }
  }
  const auto until = env_.now() + setup_.settings.release_timeout;
  while (ending->awaited > 0 && env_.now() < until) {
    co_await ending->news.wait_until(until);
  }
  on_broken_freed_ = {};
  for (const auto& hold : renewer_->holds()) leave_behind(hold);
  for (const auto& [number, broken] : std::exchange(broken_, {})) {
    broken.user->at_drop(backend_->leave_behind(broken.claim));
  }
}

// The work under it has not ended, so no other client may acquire it yet.
void Store::leave_behind(const std::shared_ptr<Hold>& hold) {
  const auto [claim, until] = renewer_->remove(*hold);
  if (claim) holder_of(hold)->at_drop(backend_->leave_behind(claim));
}

asio::awaitable<void> Store::close() {
  const auto self = shared_from_this();
  closed_ = true;
  for (const auto& [number, acquisition] : Acquisitions(acquisitions_)) acquisition->close();
  for (const auto& background : std::vector(background_)) background->close();
  connect_failure_ = make_failure(errc::closed, "");
  for (const auto& waiter : std::exchange(connect_waiters_, {})) waiter->notify();
  co_await end_holds();
  uses_->stop();
  renewer_->stop();
  releaser_.hurry();
  const auto begin = env_.now();
  auto until = std::max(releaser_.owed_until(), begin + kLostPatience);
  if (!acquisitions_.empty() || !background_.empty()) until = kNever;
  until = std::min(until, begin + setup_.settings.release_timeout);
  const bool is_idle = co_await tasks_.wait_idle(until);
  releaser_.give_up();
  env_.cancel(std::exchange(out_of_reach_timer_, 0));
  // Calls that are still under way complete when the backend closes.
  if (link_ != Link::never) {
    co_await backend_->close(env_.now() + (is_idle ? milliseconds(2'000) : kLostPatience));
  }
  backend_closed_ = true;
  co_await tasks_.wait_idle(env_.now() + std::chrono::seconds(1));
  co_await connecting_.wait_idle(env_.now() + std::chrono::seconds(1));
  tasks_.dismiss();
  connecting_.dismiss();
}

}  // namespace dlock::core
