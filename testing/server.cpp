// SPDX-License-Identifier: Apache-2.0
#include "testing/server.hpp"

#include <algorithm>
#include <utility>

#include "dlock/spi/error.hpp"

namespace dlock::testing {
namespace {

/// A holder whose thread does not run is not waited for longer.
constexpr std::chrono::seconds kTelling{10};
/// So that no clock overflows.
constexpr std::chrono::hours kLongestDelay{24 * 365};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Server>> servers;
  unsigned last = 0;
};

/// Never destroyed: managers of static storage may end after it.
Registry& registry() {
  static auto* const kept = new Registry();
  return *kept;
}

}  // namespace

std::shared_ptr<Server> Server::make() {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.servers, [](const auto& known) { return known.second.expired(); });
  auto made = std::make_shared<Server>("dlock-testing-" + std::to_string(++all.last));
  all.servers[made->name()] = made;
  return made;
}

std::shared_ptr<Server> Server::find(const std::string& name) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.servers.find(name);
  return found == all.servers.end() ? nullptr : found->second.lock();
}

void Server::enter(Listener& listener) {
  const std::lock_guard lock(mutex_);
  listeners_.insert(&listener);
}

void Server::leave(Listener& listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(&listener);
  changed_.notify_all();
}

void Server::announce() {
  for (auto* const listener : listeners_) listener->on_change();
  changed_.notify_all();
}

void Server::set_delay(std::chrono::milliseconds by) {
  const std::lock_guard lock(mutex_);
  delay_ = std::clamp<std::chrono::milliseconds>(by, std::chrono::milliseconds(0), kLongestDelay);
  announce();
}

Duration Server::delay() const {
  const std::lock_guard lock(mutex_);
  return delay_;
}

void Server::set_refusal(errc error, std::string text, std::optional<unsigned> times) {
  const std::lock_guard lock(mutex_);
  refusal_.reset();
  if (times != 0U) refusal_ = Refusal{make_failure(error, std::move(text)), times};
}

void Server::end_refusal() {
  const std::lock_guard lock(mutex_);
  refusal_.reset();
}

std::optional<Failure> Server::refusal_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!refusal_) return std::nullopt;
  auto failure = refusal_->failure;
  if (refusal_->left && --*refusal_->left == 0) refusal_.reset();
  history_.push_back({Event::Kind::refused, name, {}, LossReason::none, 0});
  changed_.notify_all();
  return failure;
}

void Server::set_link_failure(Failure why) {
  const std::lock_guard lock(mutex_);
  link_failure_ = std::move(why);
  announce();
}

Failure Server::link_failure() const {
  const std::lock_guard lock(mutex_);
  return link_failure_;
}

void Server::set_min_token(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  min_token_ = token;
}

std::uint64_t Server::min_token() const {
  const std::lock_guard lock(mutex_);
  return min_token_;
}

void Server::on_granted(Listener& to, const ClaimRequest& request, std::uint64_t token,
                        TimePoint until) {
  const std::lock_guard lock(mutex_);
  const Grant grant{&to, {request.name, request.permits != 0}, request.permits, token, until};
  const auto [place, is_new] = grants_.try_emplace(request.owner.id, grant);
  place->second.until = until;
  if (!is_new) return;
  history_.push_back(
      {Event::Kind::granted, request.name, token, LossReason::none, request.permits});
  changed_.notify_all();
}

bool Server::on_released(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  auto found = grants_.extract(owner);
  if (found.empty()) return true;
  const auto& grant = found.mapped();
  changed_.notify_all();
  if (grant.dropped) return false;
  history_.push_back(
      {Event::Kind::released, grant.what.name, grant.token, LossReason::none, grant.permits});
  return true;
}

std::optional<LossReason> Server::on_renewed(const std::string& owner, TimePoint now,
                                             TimePoint until) {
  const std::lock_guard lock(mutex_);
  const auto found = grants_.find(owner);
  if (found == grants_.end()) return LossReason::removed;
  auto& grant = found->second;
  if (!grant.dropped && grant.until <= now) drop_locked(grant, LossReason::expired);
  if (grant.dropped) return grant.dropped;
  if (grant.broken_by) return LossReason::broken;
  grant.until = until;
  return std::nullopt;
}

std::optional<TimePoint> Server::mark_broken(const Thing& what, std::uint64_t token,
                                             const std::string& by, TimePoint now) {
  const std::lock_guard lock(mutex_);
  for (auto& [owner, grant] : grants_) {
    const bool is_it = grant.what == what && grant.token == token && !grant.dropped;
    if (!is_it || grant.until <= now) continue;
    if (!grant.broken_by) grant.broken_by = by;
    return grant.until;
  }
  return std::nullopt;
}

std::string Server::broken_by(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = grants_.find(owner);
  return found == grants_.end() ? std::string() : found->second.broken_by.value_or("");
}

bool Server::is_granted(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  return grants_.count(owner) != 0;
}

template <class Do>
void Server::each_holder(const Thing& what, const Do& work) const {
  for (const auto& [owner, grant] : grants_) {
    if (grant.what == what && !grant.dropped) work(grant);
  }
}

void Server::drop_locked(Grant& grant, LossReason why) {
  grant.dropped = why;
  history_.push_back({Event::Kind::lost, grant.what.name, grant.token, why, grant.permits});
  changed_.notify_all();
}

template <class Which>
std::vector<std::uint64_t> Server::drop_those(const Thing& what, LossReason why,
                                              const Which& which) {
  std::vector<std::uint64_t> tokens;
  const std::lock_guard lock(mutex_);
  for (auto& [owner, grant] : grants_) {
    if (grant.what != what || grant.dropped || !which(grant)) continue;
    drop_locked(grant, why);
    tokens.push_back(grant.token);
  }
  return tokens;
}

std::vector<std::uint64_t> Server::drop(const Thing& what, LossReason why,
                                        std::optional<std::uint64_t> token) {
  return drop_those(what, why,
                    [token](const Grant& grant) { return !token || grant.token == *token; });
}

std::vector<std::uint64_t> Server::drop_overdue(const Thing& what, TimePoint now) {
  return drop_those(what, LossReason::expired,
                    [now](const Grant& grant) { return grant.until <= now; });
}

TimePoint Server::until(const Thing& what) const {
  const std::lock_guard lock(mutex_);
  auto first = kNever;
  each_holder(what, [&](const Grant& grant) { first = std::min(first, grant.until); });
  return first;
}

std::optional<LossReason> Server::dropped(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = grants_.find(owner);
  return found == grants_.end() ? std::nullopt : found->second.dropped;
}

void Server::on_told(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const auto found = grants_.find(owner);
  if (found == grants_.end()) return;
  found->second.is_told = true;
  changed_.notify_all();
}

std::optional<std::uint64_t> Server::holder_token(const Thing& what, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  std::optional<std::uint64_t> token;
  each_holder(what, [&](const Grant& grant) {
    if (grant.until > now) token = std::min(token.value_or(grant.token), grant.token);
  });
  return token;
}

bool Server::is_held_with(const Thing& what, std::uint64_t token, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  bool is_held = false;
  each_holder(what, [&](const Grant& grant) {
    is_held = is_held || (grant.token == token && grant.until > now);
  });
  return is_held;
}

void Server::wait_until_told(const Thing& what, std::uint64_t token) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kTelling, [&] {
    const auto found = std::find_if(grants_.begin(), grants_.end(), [&](const auto& known) {
      return known.second.what == what && known.second.token == token;
    });
    // Given back, or nothing comes through to its holder, or he has gone.
    return found == grants_.end() || found->second.is_told || link_failure_.error ||
           listeners_.count(found->second.to) == 0;
  });
}

std::vector<Event> Server::history() const {
  const std::lock_guard lock(mutex_);
  return history_;
}

std::size_t Server::count(Event::Kind kind, const std::string& name) const {
  return static_cast<std::size_t>(
      std::count_if(history_.begin(), history_.end(),
                    [&](const Event& event) { return event.kind == kind && event.name == name; }));
}

bool Server::wait_for(Event::Kind kind, const std::string& name, std::size_t times,
                      std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return count(kind, name) >= times; });
}

}  // namespace dlock::testing
