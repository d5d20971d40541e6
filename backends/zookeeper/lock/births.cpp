// SPDX-License-Identifier: Apache-2.0
//
// When the nodes of a queue were born, where their numbers do not tell. A reader's node that a
// writer's became has the writer's number, and counts as old as that: by its own birth those past
// the counter's end would be older than the number two, and stand before all (found by the
// simulation).
#include <fmt/format.h>

#include <optional>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "backends/zookeeper/rules/metadata.hpp"

namespace dlock::zookeeper {
namespace {

bool may_have_stepped_down(const std::string& node) {
  const auto contender = parse_contender(node);
  return contender && contender->kind == Contender::Kind::read && !needs_birth(*contender);
}

}  // namespace

// To see a node needs no permission, to read it does.
asio::awaitable<std::optional<Births>> ZooKeeperBackend::births_of(std::string path,
                                                                   std::vector<std::string> nodes,
                                                                   TimePoint deadline) {
  struct Asked {
    std::string node;
    PendingReply seen;
    std::optional<PendingReply> read{};
  };
  std::vector<Asked> asked;
  if (!session_->connected()) co_return std::nullopt;
  {
    auto& client = session_->client();
    const Client::Burst burst(client);
    for (auto& node : nodes) {
      const auto full = fmt::format("{}/{}", path, node);
      const bool read = may_have_stepped_down(node);
      asked.push_back({std::move(node), client.exists(full)});
      if (read) asked.back().read = client.get(full);
    }
  }
  Births births;
  bool lost = false;
  for (auto& one : asked) {
    const auto seen = co_await reply_until(std::move(one.seen), deadline);
    Reply read;
    read.rc = ZNOAUTH;
    if (one.read) read = co_await reply_until(std::move(*one.read), deadline);
    lost = lost || is_loss(seen.rc) || is_loss(read.rc);
    if (seen.rc != ZOK) continue;
    const auto metadata = read.rc == ZOK ? read_metadata(read.text) : std::nullopt;
    births[one.node] = born_of(metadata, seen.stat.czxid);
  }
  if (lost) co_return std::nullopt;
  co_return births;
}

}  // namespace dlock::zookeeper
