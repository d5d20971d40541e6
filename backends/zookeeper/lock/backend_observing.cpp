// SPDX-License-Identifier: Apache-2.0
//
// An observer of a lock's holder watches the lock's first node, or the lock's directory while it
// has none. That is one request for each change, and none without a change.
#include <utility>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

bool ZooKeeperBackend::watch_holder(const std::string& name) {
  auto& observed = observed_[name];
  if (!observed) observed = std::make_shared<Observed>();
  look_for_first(name, observed);
  return true;
}

void ZooKeeperBackend::unwatch_holder(const std::string& name) noexcept { observed_.erase(name); }

/// Without a connection the next one does it (Store::on_link_up()).
void ZooKeeperBackend::look_for_first(const std::string& name, const ObservedPtr& observed) {
  if (closed_ || !session_->connected()) return;
  observed->again = true;
  if (observed->looking) return;
  observed->looking = true;  // it may have ended when spawn() returns
  spawn(env_, find_first(alive_, this, name, observed));
}

asio::awaitable<void> ZooKeeperBackend::find_first(std::weak_ptr<bool> alive,
                                                   ZooKeeperBackend* self, std::string name,
                                                   ObservedPtr observed) {
  bool goes_on = true;
  while (goes_on && !alive.expired() && std::exchange(observed->again, false)) {
    goes_on = co_await self->watch_first(alive, name, observed);
  }
  observed->looking = false;
}

// Returns false if the connection is lost. The watch itself reports changes after the answer. The
// call at the end reports the changes before it.
asio::awaitable<bool> ZooKeeperBackend::watch_first(std::weak_ptr<bool> alive, std::string name,
                                                    ObservedPtr observed) {
  const auto path = names_.path(name);
  if (closed_ || !session_->connected()) co_return false;
  const auto list = [&] { return session_->client().children(path); };
  auto asked = list();
  const auto listing = co_await reply_until(std::move(asked), kNever);
  if (alive.expired() || is_loss(listing.rc) || !session_->connected()) co_return false;
  const auto line = in_line(listing.children, {});
  if (!line.empty()) {
    auto set = watch_node(name, observed, path + "/" + line.front().name, false);
    co_await reply_until(std::move(set), kNever);
    co_return true;
  }
  if (listing.rc == ZNONODE) {
    auto set = watch_node(name, observed, path, true);
    co_await reply_until(std::move(set), kNever);
    co_return true;
  }
  observed->watch.reset();
  observed->watched.clear();
  if (std::exchange(observed->by_children, true)) co_return true;
  auto set = session_->client().children_and_watch(path);
  const auto now = co_await reply_until(std::move(set), kNever);
  if (alive.expired()) co_return false;
  if (now.rc != ZOK) observed->by_children = false;
  if (now.rc == ZNONODE || !in_line(now.children, {}).empty()) observed->again = true;
  sink_.on_holder_changed(name);
  co_return true;
}

PendingReply ZooKeeperBackend::watch_node(const std::string& name, const ObservedPtr& observed,
                                          const std::string& path, bool also_absent) {
  if (observed->watched != path || !observed->watch) {
    const auto told = [this, name, alive = std::weak_ptr(alive_)](WatchEvent event) {
      if (!alive.expired()) on_watched(name, event);
    };
    observed->watch =
        also_absent ? session_->watch_always(path, told) : session_->watch(path, told);
    observed->watched = path;
  }
  return session_->set_watch(path);
}

void ZooKeeperBackend::on_watched(const std::string& name, WatchEvent event) {
  const auto found = observed_.find(name);
  if (found == observed_.end()) return;
  const auto observed = found->second;
  if (event == WatchEvent::children) observed->by_children = false;
  if (event == WatchEvent::failed) return;  // asked again with the next connection
  sink_.on_holder_changed(name);
  if (!is_set(event)) look_for_first(name, observed);
}

}  // namespace dlock::zookeeper
