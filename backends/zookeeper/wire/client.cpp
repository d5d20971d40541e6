// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/client.hpp"

namespace dlock::zookeeper {

Client::Burst::Burst(Client& client) : client_(client) {
  if (client_.corked_++ == 0) client_.cork(true);
}

Client::Burst::~Burst() {
  if (--client_.corked_ == 0) client_.cork(false);
}

asio::awaitable<Reply> reply_until(PendingReply pending, TimePoint deadline) {
  auto reply = co_await pending.get_until(deadline);
  if (!reply) co_return Reply();
  co_return std::move(*reply);
}

}  // namespace dlock::zookeeper
