// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/lock/token_offset.hpp"

#include <algorithm>

#include "backends/zookeeper/error.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::zookeeper {
namespace {

/// The slack of a store whose tokens are microseconds: nineteen hours.
constexpr std::uint64_t kSlack = std::uint64_t{1} << 36U;

}  // namespace

TokenOffset::TokenOffset(std::shared_ptr<Session> session, std::string path)
    : session_(std::move(session)), path_(std::move(path)) {}

void TokenOffset::forget() {
  known_ = false;
  watch_.reset();
}

asio::awaitable<TokenOffset::Value> TokenOffset::value(TimePoint deadline) {
  const auto here = known();
  if (here) co_return *here;
  const int rc = co_await read(deadline);
  co_return Value{rc, offsets_.back()};
}

asio::awaitable<int> TokenOffset::read(TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  if (!watch_) {
    watch_ = session_->watch_always(path_, [events = events_](WatchEvent event) {
      if (!is_set(event)) ++*events;
    });
  }
  const auto before = *events_;
  const auto number = session_->number();
  auto watching = session_->set_watch(path_);
  const auto watched = co_await reply_until(std::move(watching), deadline);
  if (is_loss(watched.rc)) co_return watched.rc;
  if (watched.rc == ZOK) {
    if (!session_->connected()) co_return ZCONNECTIONLOSS;
    auto reading = session_->client().get(path_);
    const auto found = co_await reply_until(std::move(reading), deadline);
    const int rc = take(found);
    if (rc != ZOK) co_return rc;
  }
  if (number != session_->number() || !session_->connected()) co_return ZCONNECTIONLOSS;
  // After a change meanwhile, the value that was read may be the old or the new one.
  if (*events_ != before) co_return ZOPERATIONTIMEOUT;
  heard_ = before;
  known_ = true;
  co_return ZOK;
}

int TokenOffset::take(const Reply& reply) {
  if (reply.rc == ZNONODE) return ZOK;
  if (reply.rc != ZOK) return reply.rc;
  auto parsed = parse_offsets(reply.text);
  newer_ = newer_offsets(path_, reply.text);
  if (!parsed) return ZBADARGUMENTS;
  if (parsed->back() >= offsets_.back()) offsets_ = std::move(*parsed);
  return ZOK;
}

Failure TokenOffset::unreadable() const {
  if (!newer_.empty()) return {Error::newer_format, newer_};
  return {Error::damaged_offset, path_};
}

asio::awaitable<int> TokenOffset::raise(std::uint64_t least, TimePoint deadline) {
  if (least > offsets_.back() && least >= kTokenEnd - kSlack) co_return kNoTokenLeft;
  int rc = ZOK;
  while (offsets_.back() < least) {
    rc = co_await raise_once(least, deadline);
    const bool again = rc == ZOK || rc == ZBADVERSION || rc == ZNODEEXISTS || rc == ZNONODE;
    if (!again) co_return rc;
  }
  co_return ZOK;
}

// Does not overwrite a value that another client writes meanwhile.
asio::awaitable<int> TokenOffset::raise_once(std::uint64_t least, TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto looking = session_->client().get(path_);
  const auto found = co_await reply_until(std::move(looking), deadline);
  const int rc = take(found);
  if (rc != ZOK || offsets_.back() >= least) co_return rc;
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto next = offsets_;
  next.push_back(least + kSlack);
  const auto text = write_offsets(next);
  auto writing = found.rc == ZNONODE
                     ? session_->client().create(path_, text, Client::Mode::persistent)
                     : session_->client().set_version(path_, text, found.stat.version);
  const auto written = co_await reply_until(std::move(writing), deadline);
  if (written.rc == ZOK) offsets_ = std::move(next);
  co_return written.rc;
}

}  // namespace dlock::zookeeper
