// SPDX-License-Identifier: Apache-2.0
#include "testing/backend.hpp"

#include <algorithm>
#include <utility>

#include "dlock/memory.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::testing {
namespace {

std::shared_ptr<Server> server_of(const StoreOptions& options) {
  const auto name = options.endpoints.empty() ? std::string() : options.endpoints.front().host;
  if (auto found = Server::find(name)) return found;
  throw LockError(
      make_error_code(errc::config_invalid),
      {{}, options.name, "there is no dlock::testing::Store '" + name + "' in this process"});
}

/// The same store below, under a scheme that it knows.
StoreOptions below(const StoreOptions& options) {
  StoreOptions inner;
  inner.name = options.name;
  inner.scheme = "memory";
  inner.endpoints = options.endpoints;
  inner.app = options.app;
  return inner;
}

Capabilities declare(std::chrono::milliseconds lease) {
  Capabilities capabilities;
  capabilities.guarantee = Guarantee::exclusive;
  capabilities.assumptions = {{"one_process", "all users of the lock are threads of one process"}};
  capabilities.fair = true;
  capabilities.shared_mode = true;
  capabilities.permits = true;
  capabilities.token = TokenStrength::durable;
  capabilities.wake_up = WakeUp::push;
  capabilities.lease_scope = LeaseScope::claim;
  capabilities.lease = lease;
  capabilities.shortest_lease = std::chrono::milliseconds(100);
  capabilities.longest_lease = std::chrono::hours(24);
  capabilities.can_list = true;
  capabilities.can_evict = true;
  capabilities.can_head_start = true;
  capabilities.can_ask = true;
  capabilities.notes = {"in process: for tests of code that uses locks"};
  return capabilities;
}

Thing thing_of(const ClaimRequest& request) { return {request.name, request.permits != 0}; }

Failure no_answer() { return make_failure(errc::unavailable, "no answer in time"); }

}  // namespace

FaultyBackend::FaultyBackend(const StoreOptions& options, Env& env, EventSink& sink)
    : server_(server_of(options)),
      env_(env),
      sink_(sink),
      mailbox_(std::make_shared<Mailbox>(Mailbox{this})),
      inner_(memory::backend().create(below(options), env, *this)),
      capabilities_(declare(options.duration("lease"))) {
  server_->enter(*this);
}

FaultyBackend::~FaultyBackend() {
  server_->leave(*this);
  mailbox_->backend = nullptr;
}

// From whichever thread commands. Nothing is kept from before: the loop looks for itself.
void FaultyBackend::on_change() {
  env_.post([weak = std::weak_ptr(mailbox_)] {
    const auto box = weak.lock();
    if (box && box->backend != nullptr) box->backend->look_at_the_link();
  });
}

void FaultyBackend::look_at_the_link() {
  const auto why = server_->link_failure();
  const bool is_down = static_cast<bool>(why.error);
  if (std::exchange(is_link_down_, is_down) != is_down && !is_closed_) {
    if (is_down) {
      sink_.on_link_down(why);
    } else {
      sink_.on_link_up();
    }
  }
  for (auto* const waiter : news_) waiter->notify();
  if (is_down) return;
  for (const auto& claim : std::exchange(missed_, {})) tell_of_the_end(claim, LossReason::removed);
  for (const auto& [claim, how] : std::exchange(unheard_, {})) sink_.on_asked(claim, how);
}

asio::awaitable<void> FaultyBackend::next_news(TimePoint deadline) {
  Signal news(env_);
  const auto place = news_.insert(news_.end(), &news);
  co_await news.wait_until(deadline);
  news_.erase(place);
}

// The request has been carried out. False: its answer has not come by then, or was lost on the way.
asio::awaitable<bool> FaultyBackend::answered(TimePoint deadline) {
  const auto sent = env_.now();
  while (!is_closed_ && !server_->link_failure().error) {
    const auto due = sent + server_->delay();
    const auto now = env_.now();
    if (now >= due) co_return true;
    if (now >= deadline) break;
    co_await next_news(std::min(due, deadline));
  }
  co_return false;
}

asio::awaitable<Failure> FaultyBackend::connect(TimePoint deadline) {
  auto failure = server_->link_failure();
  while (failure.error && !is_closed_ && env_.now() < deadline) {
    co_await next_news(deadline);
    failure = server_->link_failure();
  }
  if (!failure.error) failure = co_await inner_->connect(deadline);
  is_link_down_ = static_cast<bool>(failure.error);
  co_return failure;
}

ClaimPtr FaultyBackend::make_claim(ClaimRequest request) {
  request.min_token = std::max(request.min_token, server_->min_token());
  return inner_->make_claim(std::move(request));
}

// Whoever is dropped is told by his own backend.
asio::awaitable<void> FaultyBackend::drop_overdue(Thing what, TimePoint deadline) {
  for (const auto token : server_->drop_overdue(what, env_.now())) {
    EvictRequest request{what.name, token};
    request.at_once = true;
    co_await take_away(what, std::move(request), deadline);
  }
}

asio::awaitable<EvictAnswer> FaultyBackend::take_away(Thing what, EvictRequest request,
                                                      TimePoint deadline) {
  if (what.is_semaphore) co_return co_await inner_->evict_permits(std::move(request), deadline);
  co_return co_await inner_->evict(std::move(request), deadline);
}

asio::awaitable<ClaimAnswer> FaultyBackend::claim(ClaimPtr claim, TimePoint deadline) {
  ClaimAnswer answer;
  answer.failure = server_->link_failure();
  if (answer.failure.error) co_return answer;
  answer = co_await carry_out(claim, deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) {
    answer = ClaimAnswer();
    answer.status = ClaimStatus::unknown;
    answer.failure = no_answer();
  }
  co_return answer;
}

asio::awaitable<ClaimAnswer> FaultyBackend::carry_out(ClaimPtr claim, TimePoint deadline) {
  const auto& request = claim->request();
  const auto sent = env_.now();
  ClaimAnswer answer;
  if (auto refusal = server_->refusal_of(request.name)) {
    const bool may_try_again = refusal->error == errc::unavailable;
    answer.status = may_try_again ? ClaimStatus::unavailable : ClaimStatus::failed;
    answer.failure = std::move(*refusal);
    co_return answer;
  }
  const auto wanted = thing_of(request);
  co_await drop_overdue(wanted, deadline);
  answer = co_await inner_->claim(claim, deadline);
  if (answer.status != ClaimStatus::granted) co_return answer;
  answer.validity = {sent + request.lease, sent + request.lease / 3};
  server_->on_granted(*this, request, *answer.token, answer.validity.until);
  co_return answer;
}

// It ends when the present holder's lease does, at the latest.
asio::awaitable<void> FaultyBackend::wait(ClaimPtr claim, TimePoint deadline) {
  const auto until = std::min(deadline, server_->until(thing_of(claim->request())));
  co_await inner_->wait(std::move(claim), until);
}

asio::awaitable<std::vector<ExtendAnswer>> FaultyBackend::extend(std::vector<ClaimPtr> claims,
                                                                 TimePoint deadline) {
  std::vector<ExtendAnswer> answers(claims.size());
  if (server_->link_failure().error) co_return answers;
  const auto sent = env_.now();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto& request = claims[i]->request();
    const auto gone = server_->on_renewed(request.owner.id, sent, sent + request.lease);
    answers[i].status = gone ? ExtendStatus::gone : ExtendStatus::extended;
    answers[i].validity = {sent + request.lease, sent + request.lease / 3};
    answers[i].reason = gone.value_or(LossReason::none);
    if (gone == LossReason::broken) answers[i].broken_by = server_->broken_by(request.owner.id);
  }
  const bool is_told = co_await answered(deadline);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!is_told) {
      answers[i] = ExtendAnswer();
      answers[i].status = ExtendStatus::unknown;
    } else if (answers[i].status == ExtendStatus::gone) {
      // When the core has looked at the answer.
      env_.post(
          [server = server_, owner = claims[i]->request().owner.id] { server->on_told(owner); });
    }
  }
  co_return answers;
}

asio::awaitable<ReleaseAnswer> FaultyBackend::release(ClaimPtr claim, bool search,
                                                      TimePoint deadline) {
  ReleaseAnswer answer;
  answer.failure = server_->link_failure();
  // A place in the queue does not outlive its link.
  const bool is_granted = server_->is_granted(claim->request().owner.id);
  if (answer.failure.error && is_granted) co_return answer;
  const bool is_cut_off = static_cast<bool>(answer.failure.error);
  answer = co_await carry_out_release(claim, search, deadline);
  if (is_cut_off) co_return answer;
  const bool is_told = co_await answered(deadline);
  if (!is_told) {
    answer.status = ReleaseStatus::unknown;
    answer.failure = no_answer();
  }
  co_return answer;
}

asio::awaitable<ReleaseAnswer> FaultyBackend::carry_out_release(ClaimPtr claim, bool search,
                                                                TimePoint deadline) {
  const bool was_ours = server_->on_released(claim->request().owner.id);
  auto answer = co_await inner_->release(std::move(claim), search, deadline);
  if (!was_ours) answer.status = ReleaseStatus::not_holder;
  co_return answer;
}

asio::awaitable<Result<LockStatus>> FaultyBackend::inspect(std::string name, TimePoint deadline) {
  Result<LockStatus> result;
  result.failure = server_->link_failure();
  if (result.failure.error) co_return result;
  const Thing lock{name, false};
  co_await drop_overdue(lock, deadline);
  result = co_await inner_->inspect(std::move(name), deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) result = {std::nullopt, no_answer()};
  co_return result;
}

asio::awaitable<Result<std::vector<LockStatus>>> FaultyBackend::list(std::string prefix,
                                                                     TimePoint deadline) {
  Result<std::vector<LockStatus>> result;
  result.failure = server_->link_failure();
  if (result.failure.error) co_return result;
  result = co_await inner_->list(std::move(prefix), deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) result = {std::nullopt, no_answer()};
  co_return result;
}

asio::awaitable<EvictAnswer> FaultyBackend::evict_thing(Thing what, EvictRequest request,
                                                        TimePoint deadline) {
  EvictAnswer answer;
  answer.failure = server_->link_failure();
  if (answer.failure.error) co_return answer;
  co_await drop_overdue(what, deadline);
  const auto now = env_.now();
  std::optional<TimePoint> until;
  if (!request.at_once) {
    until = server_->mark_broken(what, request.token, break_words(request.mark), now);
  } else if (server_->is_held_with(what, request.token, now)) {
    until = server_->until(what);
    server_->drop(what, LossReason::broken, request.token);
  }
  answer = co_await take_away(what, std::move(request), deadline);
  if (until && *until != kNever) {
    answer.within = std::chrono::ceil<std::chrono::milliseconds>(*until - now);
  }
  const bool is_told = co_await answered(deadline);
  if (!is_told) answer.failure = no_answer();
  co_return answer;
}

asio::awaitable<EvictAnswer> FaultyBackend::evict(EvictRequest request, TimePoint deadline) {
  const Thing lock{request.name, false};
  co_return co_await evict_thing(lock, std::move(request), deadline);
}

asio::awaitable<EvictAnswer> FaultyBackend::evict_permits(EvictRequest request,
                                                          TimePoint deadline) {
  const Thing semaphore{request.name, true};
  co_return co_await evict_thing(semaphore, std::move(request), deadline);
}

asio::awaitable<DowngradeAnswer> FaultyBackend::downgrade(ClaimPtr held, TimePoint deadline) {
  DowngradeAnswer answer;
  answer.failure = server_->link_failure();
  answer.status = DowngradeStatus::unavailable;
  if (answer.failure.error) co_return answer;
  answer = co_await inner_->downgrade(std::move(held), deadline);
  const bool is_told = co_await answered(deadline);
  if (is_told) co_return answer;
  answer.status = DowngradeStatus::unknown;
  answer.failure = no_answer();
  co_return answer;
}

asio::awaitable<AskAnswer> FaultyBackend::ask(std::string name, std::uint64_t token, Revocation how,
                                              TimePoint deadline) {
  AskAnswer answer;
  answer.failure = server_->link_failure();
  if (answer.failure.error) co_return answer;
  const Thing lock{name, false};
  co_await drop_overdue(lock, deadline);
  answer = co_await inner_->ask(std::move(name), token, std::move(how), deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) answer.failure = no_answer();
  co_return answer;
}

asio::awaitable<Result<SemaphoreStatus>> FaultyBackend::inspect_semaphore(std::string name,
                                                                          TimePoint deadline) {
  Result<SemaphoreStatus> result;
  result.failure = server_->link_failure();
  if (result.failure.error) co_return result;
  const Thing semaphore{name, true};
  co_await drop_overdue(semaphore, deadline);
  result = co_await inner_->inspect_semaphore(std::move(name), deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) result = {std::nullopt, no_answer()};
  co_return result;
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> FaultyBackend::list_semaphores(
    std::string prefix, TimePoint deadline) {
  Result<std::vector<SemaphoreStatus>> result;
  result.failure = server_->link_failure();
  if (result.failure.error) co_return result;
  result = co_await inner_->list_semaphores(std::move(prefix), deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) result = {std::nullopt, no_answer()};
  co_return result;
}

asio::awaitable<Failure> FaultyBackend::set_limit(std::string name, std::uint32_t limit,
                                                  TimePoint deadline) {
  auto failure = server_->link_failure();
  if (failure.error) co_return failure;
  failure = co_await inner_->set_limit(std::move(name), limit, deadline);
  const bool is_told = co_await answered(deadline);
  if (!is_told) failure = no_answer();
  co_return failure;
}

// What was said while there was no link is heard after it.
void FaultyBackend::on_asked(const ClaimPtr& claim, const Revocation& how) {
  if (server_->link_failure().error) {
    unheard_.emplace_back(claim, how);
  } else {
    sink_.on_asked(claim, how);
  }
}

void FaultyBackend::on_holder_changed(const std::string& name) {
  if (!server_->link_failure().error) sink_.on_holder_changed(name);
}

asio::awaitable<void> FaultyBackend::close(TimePoint deadline) {
  is_closed_ = true;
  server_->leave(*this);
  missed_.clear();
  for (auto* const waiter : news_) waiter->notify();
  co_await inner_->close(deadline);
}

void FaultyBackend::on_claim_gone(const ClaimPtr& claim, LossReason why) {
  if (is_closed_) return;
  if (server_->link_failure().error) return missed_.push_back(claim);
  tell_of_the_end(claim, why);
}

// Without a link its next renewal says so.
void FaultyBackend::on_claim_broken(const ClaimPtr& claim, const std::string& by) {
  if (is_closed_ || server_->link_failure().error) return;
  sink_.on_claim_broken(claim, by);
  server_->on_told(claim->request().owner.id);
}

void FaultyBackend::tell_of_the_end(const ClaimPtr& claim, LossReason why) {
  const auto& owner = claim->request().owner.id;
  sink_.on_claim_gone(claim, server_->dropped(owner).value_or(why));
  server_->on_told(owner);
}

}  // namespace dlock::testing
