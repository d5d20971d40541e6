// SPDX-License-Identifier: Apache-2.0
//
// Notifies observers of a change of the holder. Clients that begin or end to hold a lock publish a
// message on that lock's channel. The scripts do not publish it, so other grants and releases do
// not pay for it.
#include <algorithm>

#include "backends/redis/backend.hpp"
#include "backends/redis/wire/codec.hpp"

namespace dlock::redis {

/// Also the word on it. Among those that the rights of an application have.
std::string RedisBackend::holder_channel(const std::string& name) const {
  return std::string(kChannelPrefix) + "holder:" + names_.base(name).text;
}

bool RedisBackend::watch_holder(const std::string& name) {
  auto channel = holder_channel(name);
  subscriber_->listen_to(channel);
  observed_[std::move(channel)] = name;
  return true;
}

void RedisBackend::unwatch_holder(const std::string& name) noexcept {
  const auto found = std::find_if(observed_.begin(), observed_.end(),
                                  [&](const auto& entry) { return entry.second == name; });
  if (found == observed_.end()) return;
  subscriber_->stop_listening_to(found->first);
  observed_.erase(found);
}

void RedisBackend::tell_holder_changed(const std::string& name) {
  if (!link_->up() || !facts_.publish_refused.empty()) return;
  const auto channel = holder_channel(name);
  link_->connection()->send(words({"PUBLISH", channel, channel}));
}

}  // namespace dlock::redis
