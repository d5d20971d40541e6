// SPDX-License-Identifier: Apache-2.0
#include "core/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/deadline.hpp"
#include "core/error.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Names whose last token is remembered: some 10 MB at most.
constexpr std::size_t kMostTokens = 50'000;

bool meets(const Capabilities& capabilities, const std::string& requirement) {
  if (requirement == "exclusive") return capabilities.guarantee == Guarantee::exclusive;
  if (requirement == "fair") return capabilities.fair;
  if (requirement == "token") return capabilities.token == TokenStrength::durable;
  return false;
}

Failure invalid_lease(std::string text) {
  return make_failure(errc::invalid_argument, std::move(text));
}

/// Of a lease per lock; `lease` is what a plan leaves of what was asked for.
Failure refused_claim_lease(const Capabilities& capabilities, milliseconds asked,
                            milliseconds lease) {
  if (lease >= capabilities.shortest_lease && asked <= capabilities.longest_lease) return {};
  return invalid_lease(fmt::format("lease {} ms: this store gives {} ms to {} ms", asked.count(),
                                   capabilities.shortest_lease.count(),
                                   capabilities.longest_lease.count()));
}

/// Of a lease that the session has.
Failure refused_session_lease(const Capabilities& capabilities, const Acquisition::Request& request,
                              std::string_view option) {
  const auto session = capabilities.lease.count();
  if (request.lease && request.lease->count() <= 0) {
    return invalid_lease(
        fmt::format("lease {} ms: it must be positive; on this store {} ms or more",
                    request.lease->count(), session));
  }
  if (request.lease && *request.lease < capabilities.lease) {
    return invalid_lease(
        fmt::format("lease {} ms: a dead holder's session lasts {} ms here; set {} of the store "
                    "to {} ms or less",
                    request.lease->count(), session, option, request.lease->count()));
  }
  if (!request.max_lease || *request.max_lease >= capabilities.lease) return {};
  return make_failure(
      errc::config_unsafe,
      fmt::format("the plan allows leases of {} ms at most, a session of this store lasts {} ms; "
                  "set {} of the store to {} ms or less",
                  request.max_lease->count(), session, option, request.max_lease->count()));
}

/// What was asked for is never bent: whoever asked counts on it.
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
          fmt::format("lease {} ms: it must be positive; on this store 1 ms or more (it has no "
                      "lease: a dead holder's lock is free at once)",
                      request.lease->count()));
  }
  return {};
}

Failure refused_margin(const Capabilities& capabilities, milliseconds lease, Duration margin) {
  if (capabilities.lease_scope == LeaseScope::none || margin < lease) return {};
  return make_failure(
      errc::config_invalid,
      fmt::format("drift_margin: {} ms leave nothing of a lease of {} ms; write less, or leave it "
                  "out (1 % of the lease, at least 20 ms)",
                  std::chrono::duration_cast<milliseconds>(margin).count(), lease.count()));
}

}  // namespace

Store::Store(Host& host, Setup setup)
    : host_(host),
      env_(host.env()),
      setup_(std::move(setup)),
      tasks_(env_),
      connecting_(env_),
      backend_(setup_.descriptor->create(setup_.options, env_, *this)),
      renewer_(std::make_shared<Renewer>(env_, *backend_, tasks_,
                                         [this](const ClaimPtr& claim) {
                                           claim->mark_lost();
                                           withdraw(claim, std::nullopt);
                                         })),
      releaser_(env_, *backend_, tasks_),
      tokens_(kMostTokens),
      arrivals_(env_, *backend_),
      me_{{}, host_name(), ::getpid(), setup_.options.app} {}

void Store::acquire(std::shared_ptr<Acquisition> acquisition) {
  acquisitions_.emplace(acquisition->number(), acquisition);
  if (closed_) acquisition->close();
  tasks_.spawn(acquisition->run());
}

void Store::forget(Acquisition& acquisition) { acquisitions_.erase(acquisition.number()); }

void Store::receive(std::shared_ptr<Guest> guest, asio::awaitable<void> work) {
  if (closed_) guest->close();
  guests_.push_back(std::move(guest));
  tasks_.spawn(std::move(work));
}

asio::awaitable<Failure> Store::admit(std::string name) {
  Failure failure;
  if (!arrivals_.were_read()) failure = co_await read_arrivals();
  if (failure.error) co_return failure;
  if (arrivals_.are_old()) read_arrivals_meanwhile();
  failure = arrivals_.admit(name, this->name());
  if (!failure.error) co_return failure;
  // Nobody is refused for what was so some time ago.
  failure = co_await read_arrivals();
  if (!failure.error) failure = arrivals_.admit(name, this->name());
  co_return failure;
}

asio::awaitable<Failure> Store::read_arrivals() {
  Failure failure;
  try {
    failure = co_await arrivals_.read(env_.now() + request_timeout());
  } catch (const std::exception& error) {
    failure = make_failure(errc::protocol, error.what());
  }
  co_return failure;
}

void Store::read_arrivals_meanwhile() {
  if (std::exchange(reading_arrivals_, true)) return;
  tasks_.spawn([](std::shared_ptr<Store> self) -> asio::awaitable<void> {
    co_await self->read_arrivals();
    self->reading_arrivals_ = false;
  }(shared_from_this()));
}

asio::awaitable<Failure> Store::check_plan(std::string plan, std::string id) {
  auto failure = co_await arrivals_.check_id(std::move(plan), std::move(id), name(),
                                             env_.now() + request_timeout());
  co_return failure;
}

asio::awaitable<Failure> Store::connected(std::optional<milliseconds> timeout) {
  if (closed_) co_return make_failure(errc::closed, "");
  if (link_ == Link::up) co_return Failure{};
  const auto self = shared_from_this();
  auto waiter = std::make_shared<Signal>(env_);
  connect_waiters_.push_back(waiter);
  if (link_ == Link::never) {
    link_ = Link::connecting;
    connecting_.spawn(connect());
  }
  // Named first: g++ 12 takes both sides of a ?: within an expression that awaits.
  const auto until = timeout ? deadline_after(env_.now(), *timeout) : kNever;
  const bool told = co_await waiter->wait_until(until);
  if (told) co_return connect_failure_;
  auto text = fmt::format("not reached in {} ms", timeout->count());
  if (const auto why = trouble(); !why.text.empty()) text += ": " + why.text;
  co_return make_failure(errc::unavailable, std::move(text));
}

asio::awaitable<Failure> Store::ready(std::vector<std::string> route_requires) {
  auto failure = co_await connected();
  if (!failure.error) failure = unmet_requirement(std::move(route_requires));
  co_return failure;
}

asio::awaitable<void> Store::connect() {
  const auto self = shared_from_this();
  try {
    connect_failure_ = co_await backend_->connect(env_.now() + setup_.settings.connect_timeout);
  } catch (const std::exception& error) {
    connect_failure_ = make_failure(errc::protocol, error.what());
  }
  // What fails here is asked again by the first lock.
  if (!connect_failure_.error) co_await read_arrivals();
  if (closed_) connect_failure_ = make_failure(errc::closed, "");
  link_ = connect_failure_.error ? Link::never : Link::up;
  if (link_ == Link::up) warn_once_of_shortfalls();
  for (const auto& waiter : std::exchange(connect_waiters_, {})) waiter->notify();
}

Failure Store::unmet_requirement(std::vector<std::string> required) const {
  const auto& capabilities = backend_->capabilities();
  required.insert(required.end(), setup_.settings.require.begin(), setup_.settings.require.end());
  for (const auto& requirement : required) {
    if (meets(capabilities, requirement)) continue;
    std::string text =
        fmt::format("require: {}, but {} store '{}' offers {}", requirement,
                    setup_.descriptor->name, name(), to_string(capabilities.guarantee));
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
  warned_ = true;
  std::string text =
      fmt::format("store '{}' promises {} only", name(), to_string(capabilities.guarantee));
  for (const auto& shortfall : capabilities.shortfalls) {
    text += fmt::format("; {}: {}", shortfall.reason, shortfall.remedy);
  }
  host_.log(LogLevel::warning, text);
}

Duration Store::lease_of(const std::optional<milliseconds>& asked,
                         const std::optional<milliseconds>& most) const {
  const auto& capabilities = backend_->capabilities();
  if (capabilities.lease_scope != LeaseScope::claim) return capabilities.lease;
  const auto lease = asked.value_or(setup_.settings.lease.value_or(capabilities.lease));
  return most ? std::min(lease, *most) : lease;
}

Failure Store::make_claim(const Acquisition::Request& request, ClaimPtr& claim) {
  const auto& capabilities = backend_->capabilities();
  const auto lease =
      std::chrono::duration_cast<milliseconds>(lease_of(request.lease, request.max_lease));
  auto refused = refused_lease(capabilities, request, lease, setup_.descriptor->lease_option);
  if (!refused.error) refused = refused_margin(capabilities, lease, margin(request));
  if (refused.error) return refused;
  ClaimRequest wanted;
  wanted.name = request.name;
  wanted.owner = me_;
  wanted.owner.id = make_uuid(env_);
  wanted.owner.id.replace(0, request.program.size(), request.program);
  wanted.lease = lease;
  wanted.queue = !request.limits.once;
  wanted.min_token = request.min_token;
  // A counter that the store may have lost goes on from where we know it to have been.
  if (capabilities.token == TokenStrength::time_seeded) {
    wanted.min_token = std::max(wanted.min_token, tokens_.find(request.name).value_or(0));
  }
  claim = backend_->make_claim(std::move(wanted));
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

Failure Store::refused_token(const std::string& name, std::uint64_t token, bool may_go_back) const {
  if (token == 0 || token >= kTokenEnd) {
    return make_failure(
        errc::protocol,
        fmt::format("{} store '{}' granted token {}: a token is 1 or more and below 2^53. The "
                    "grant was given back: whoever answered is no such store, or its data was "
                    "altered",
                    setup_.descriptor->name, this->name(), token));
  }
  const auto last = tokens_.find(name);
  if (!last || token > *last || may_go_back) return {};
  return make_failure(
      errc::token_regressed,
      fmt::format(
          "{} store '{}' granted token {}, but this process had token {} before: the store "
          "has lost its data, was restored from an old copy, or its clock was set back. The "
          "grant was given back: resources that have seen {} would refuse its writes. Bring "
          "the store's data back; or, if no resource has seen the higher token, start "
          "this process anew",
          setup_.descriptor->name, this->name(), token, *last, *last));
}

std::shared_ptr<Hold> Store::hold(const ClaimPtr& claim, const ClaimAnswer& answer,
                                  const Acquisition::Request& request) {
  const auto drift = margin(request);
  if (answer.token) tokens_.raise(request.name, *answer.token);
  auto hold = std::make_shared<Hold>(
      host_.shared_from_this(), weak_from_this(),
      Hold::Identity{request.name, name(), answer.token, backend_->inheritable_descriptor(*claim),
                     claim->request().mode},
      claim, local_deadline(answer.validity, drift));
  renewer_->add(hold, claim, answer.validity,
                {backend_->capabilities().lease_scope, request_timeout(), drift,
                 lease_of(request.lease, request.max_lease)});
  return hold;
}

ReleaseFsm::Limits Store::release_limits(TimePoint lease_over) const {
  return {request_timeout(), lease_over, std::nullopt, lease_of(std::nullopt) / 4};
}

void Store::release(const std::shared_ptr<Hold>& hold, Releaser::Done done) {
  if (const auto& companion = hold->companion()) done = companion->on_release(std::move(done));
  const auto [claim, until] = renewer_->remove(*hold);
  if (!claim) {
    if (done) done(make_error_code(errc::lock_lost));
    return;
  }
  const bool session = backend_->capabilities().lease_scope == LeaseScope::session;
  releaser_.start(claim, release_limits(session ? kNever : until), setup_.settings.release_timeout,
                  std::move(done));
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
  releaser_.start(claim, limits, setup_.settings.release_timeout);
}

void Store::drop(const std::shared_ptr<Hold>& hold) {
  hold->become(HandleState::lost, LossReason::expired);
  const auto [claim, until] = renewer_->remove(*hold);
  if (!claim) return;
  claim->mark_lost();
  withdraw(claim, std::nullopt);
}

void Store::retire(Hold& hold) {
  renewer_->remove(hold);
  hold.give_back();
}

void Store::on_link_up() {
  env_.cancel(std::exchange(out_of_reach_timer_, 0));
  link_down_ = {};
  renewer_->on_link_up();
}

void Store::on_link_down(const Failure& why) {
  link_down_ = why;
  renewer_->on_link_down();
  if (out_of_reach_timer_ != 0) return;
  out_of_reach_timer_ = env_.call_at(env_.now() + setup_.settings.connect_timeout, [this, why] {
    out_of_reach_timer_ = 0;
    for (const auto& [number, acquisition] : std::map(acquisitions_))
      acquisition->out_of_reach(why);
  });
}

void Store::on_session_gone(LossReason why) { renewer_->on_session_gone(why); }

void Store::on_claim_gone(const ClaimPtr& claim, LossReason why) {
  renewer_->on_claim_gone(*claim, why);
}

void Store::on_capabilities_changed() {
  warned_ = false;
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
  auto failure = co_await connected(timeout);
  report.reached = !failure.error;
  if (report.reached) {
    report.capabilities = backend_->capabilities();
    failure = unmet_requirement(setup_.required_by_routes);
  }
  report.error = failure.error;
  report.message = failure.text;
  co_return report;
}

// Stop what works, wait while renewing, then give back.
asio::awaitable<void> Store::end_holds() {
  struct Ending {
    explicit Ending(Env& env) : news(env) {}
    Signal news;
    std::size_t awaited = 0;
  };
  auto ending = std::make_shared<Ending>(env_);
  for (const auto& hold : renewer_->holds()) {
    const auto audience = hold->audience();
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
      hold->when_left(std::move(give_back));
    } else {
      hold->when_told(std::move(give_back));
    }
  }
  const auto until = env_.now() + setup_.settings.release_timeout;
  while (ending->awaited > 0 && env_.now() < until) {
    co_await ending->news.wait_until(until);
  }
  for (const auto& hold : renewer_->holds()) release(hold, {});
}

asio::awaitable<void> Store::close() {
  const auto self = shared_from_this();
  closed_ = true;
  for (const auto& [number, acquisition] : std::map(acquisitions_)) acquisition->close();
  for (const auto& guest : std::vector(guests_)) guest->close();
  connect_failure_ = make_failure(errc::closed, "");
  for (const auto& waiter : std::exchange(connect_waiters_, {})) waiter->notify();
  co_await end_holds();
  renewer_->stop();
  releaser_.hurry();
  co_await tasks_.wait_idle(env_.now() + setup_.settings.release_timeout);
  releaser_.give_up();
  env_.cancel(std::exchange(out_of_reach_timer_, 0));
  // Calls that are still under way complete when the backend closes.
  if (link_ != Link::never) co_await backend_->close(env_.now() + std::chrono::seconds(2));
  co_await tasks_.wait_idle(env_.now() + std::chrono::seconds(1));
  co_await connecting_.wait_idle(env_.now() + std::chrono::seconds(1));
}

}  // namespace dlock::core
