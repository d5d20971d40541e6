// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/server.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "backends/memcached/lock/look.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {
namespace {

/// A server that has not answered a poll by then counts as unreachable. Its waiters then ask one by
/// one, and the core counts the time.
constexpr std::chrono::seconds kPollPatience{1};
constexpr std::chrono::seconds kCheckPatience{2};

}  // namespace

Server::Server(Env& env, EventSink& sink, Session::Settings settings, Poller::Pace pace)
    : env_(env),
      sink_(sink),
      address_(fmt::format("{}:{}", settings.server.host, settings.server.port)),
      poller_(pace),
      poll_now_(env) {
  line_ = std::make_shared<Line>(env, std::move(settings),
                                 [this](const ServerInfo& info) { learn(info); });
}

void Server::start() { line_->start(); }

void Server::stop() {
  stopped_ = true;
  line_->stop();
  wake_all();
  poll_now_.notify();
}

void Server::learn(ServerInfo info) {
  if (stopped_) return;
  const bool first = !info_;
  const bool lost_all =
      !first && (!same_run(*info_, info) || info.canary_losses != info_->canary_losses);
  const bool changed = first || info.evicts != info_->evicts || info.version != info_->version ||
                       info.max_bytes != info_->max_bytes;
  warn_of_evictions(info);
  info_ = std::move(info);
  if (changed && on_changed) on_changed();
  if (!lost_all || held_.empty() || checking_) return;
  checking_ = true;
  spawn(env_, check_held());
}

void Server::warn_of_evictions(const ServerInfo& info) {
  if (!evictions_seen_ || info.evictions < *evictions_seen_) {
    evictions_seen_ = info.evictions;
    return;
  }
  if (info.evictions == *evictions_seen_) return;
  if (*evictions_seen_ != UINT64_MAX) {
    sink_.on_warning(
        fmt::format("memcached {} is evicting items ({} since it started): locks may vanish; raise "
                    "its memory (-m), start it with -M, or use a separate server for locks",
                    address_, info.evictions));
  }
  evictions_seen_ = UINT64_MAX;  // printed once
}

RenewOrder Server::order_of(const KeyClaim& claim) {
  return {claim.key, claim.value(), claim.info};
}

asio::awaitable<void> Server::check_held() {
  const auto self = shared_from_this();
  const struct Over {
    bool& checking;
    ~Over() { checking = false; }
  } over{checking_};
  std::vector<KeyClaimPtr> claims;
  std::vector<RenewOrder> orders;
  for (const auto& [number, weak] : held_) {
    auto claim = weak.lock();
    if (!claim) continue;
    orders.push_back(order_of(*claim));
    claims.push_back(std::move(claim));
  }
  using Results = std::vector<RenewResult>;
  auto work = [orders = std::move(orders)](Call& call) mutable {
    return verify(call, std::move(orders));
  };
  const auto ran = co_await line_->run<Results>(std::move(work), env_.now() + kCheckPatience);
  // Without a result the next renewal finds it.
  if (!ran.result || stopped_) co_return;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto& result = (*ran.result)[i];
    if (result.status != ExtendStatus::gone || held_.erase(claims[i]->number()) == 0) continue;
    if (result.reason == LossReason::broken) {
      sink_.on_claim_broken(claims[i], result.broken_by);
    } else {
      sink_.on_claim_gone(claims[i], result.reason);
    }
  }
}

asio::awaitable<void> Server::wait(KeyClaimPtr claim, TimePoint deadline) {
  const auto self = shared_from_this();
  if (stopped_) co_return;
  // Strays are read at long intervals, a waiter's key at once.
  if (!poller_.has_waiters()) poll_now_.notify();
  // However the wait ends.
  const struct Place {
    Poller& poller;
    KeyClaim& claim;
    ~Place() { poller.remove(claim); }
  } place{poller_, *claim};
  poller_.add(*claim);
  keep_polling();
  co_await claim->wake.wait_until(deadline);
}

void Server::given_back(const std::string& key) { wake(poller_.next(key)); }

void Server::add_stray(ReleaseOrder stray, TimePoint until) {
  poller_.add_stray(std::move(stray), until);
  keep_polling();
}

void Server::wake(KeyClaim* claim) {
  if (claim == nullptr) return;
  claim->woken = true;
  claim->wake.notify();
}

void Server::wake_all() {
  poller_.each_sleeper([this](KeyClaim* claim) { wake(claim); });
}

void Server::keep_polling() {
  if (polling_ || stopped_) return;
  polling_ = true;
  spawn(env_, poll_while_needed());
}

asio::awaitable<void> Server::poll_while_needed() {
  const auto self = shared_from_this();
  while (!stopped_ && !poller_.idle()) {
    const auto until = env_.now() + poller_.pause(env_.random());
    const bool notified = co_await poll_now_.wait_until(until);
    if (notified) continue;
    if (!stopped_ && !poller_.idle()) co_await poll_once();
  }
  polling_ = false;
}

asio::awaitable<void> Server::poll_once() {
  auto strays = poller_.strays(env_.now());
  auto keys = poller_.keys();
  if (keys.empty() && strays.empty()) co_return;
  auto work = [keys = std::move(keys), strays = std::move(strays)](Call& call) mutable {
    return look_all(call, std::move(keys), std::move(strays));
  };
  const auto ran = co_await line_->run<PollResult>(std::move(work), env_.now() + kPollPatience);
  if (stopped_) co_return;
  if (!ran.result || !ran.result->answer.done()) {
    wake_all();
    co_return;
  }
  for (const auto& key : ran.result->free) wake(poller_.next(key));
}

}  // namespace dlock::memcached
