// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/client.hpp"

namespace dlock::zookeeper {

Client::Burst::Burst(Client& client) : client_(client) {
  if (client_.corked_++ == 0) client_.cork(true);
}

Client::Burst::~Burst() {
  if (--client_.corked_ == 0) client_.cork(false);
}

Reply in_time(std::optional<Reply> reply) { return reply ? std::move(*reply) : Reply(); }

asio::awaitable<Reply> reply_until(PendingReply pending, TimePoint deadline) {
  auto reply = co_await pending.get_until(deadline);
  co_return in_time(std::move(reply));
}

}  // namespace dlock::zookeeper
