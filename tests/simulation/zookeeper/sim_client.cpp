// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/zookeeper/sim_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>

#include "backends/zookeeper/error.hpp"

namespace dlock::simulation {

using ensemble::Operation;
using zookeeper::PendingReply;
using zookeeper::Reply;
using zookeeper::WatchEvent;
using OperationKind = Operation::Kind;

std::string SimClient::address_of(int server) { return fmt::format("10.0.0.{}:2181", server + 1); }

SimClient::SimClient(Wire::Ends ends, Process& process, Options options, Listener& listener)
    : ends_(ends),
      process_(process),
      options_(std::move(options)),
      listener_(&listener),
      timeout_(options_.session_timeout) {
  for (int id = 0; id < ensemble::Ensemble::kServers; ++id) {
    if (options_.addresses.find(address_of(id)) != std::string::npos) servers_.push_back(id);
  }
  std::rotate(servers_.begin(),
              servers_.begin() + static_cast<std::ptrdiff_t>(ends.world.below(servers_.size())),
              servers_.end());
}

SimClient::~SimClient() {
  if (state_ != State::closed) end();
}

bool SimClient::start() {
  dial_at_ = process_.now();
  arm();
  return true;
}

// The server is asked to end the session; if that is lost, it ends by itself.
void SimClient::end() {
  if (wire_ && state_ == State::connected) {
    Operation end;
    end.kind = OperationKind::close_session;
    wire_->send(++last_number_, std::move(end));
  }
  state_ = State::closed;
  process_.cancel(std::exchange(timer_, 0));
  drop();
  for (auto& request : std::exchange(pending_, {})) {
    Reply closing;
    closing.rc = ZCLOSING;
    request.result.set(std::move(closing));
  }
}

void SimClient::close(Job done) {
  end();
  process_.run_blocking([] {}, std::move(done));
}

void SimClient::drop() {
  if (const auto wire = std::exchange(wire_, {})) wire->close();
  inbox_.clear();
}

// It does not notice: what it sends now goes nowhere.
void SimClient::crash() {
  if (wire_) wire_->crash();
}

std::string SimClient::server() const {
  return connected() && wire_ ? address_of(wire_->server()) : std::string();
}

PendingReply SimClient::submit(Operation operation) {
  const auto now = process_.now();
  Request request{++last_number_, std::move(operation), PendingReply(process_), now};
  auto result = request.result;
  if (state_ != State::connected || !wire_) {
    Reply refused;
    refused.rc = state_ == State::connecting ? ZCONNECTIONLOSS : ZINVALIDSTATE;
    result.set(std::move(refused));
    return result;
  }
  if (pending_.empty()) {
    waiting_ = now;
    ++round_trips_;
  }
  last_sent_ = now;
  pending_.push_back(request);
  // A connection that turns out to be broken is seen at the next step.
  wire_->send(request.number, request.operation);
  arm();
  return result;
}

PendingReply SimClient::create(const std::string& path, std::string_view data, Mode mode) {
  Operation operation;
  operation.kind = OperationKind::create;
  operation.path = path;
  operation.data = data;
  operation.mode = static_cast<Operation::Mode>(mode);
  return submit(std::move(operation));
}

PendingReply SimClient::remove(const std::string& path) {
  return submit({.kind = OperationKind::remove, .path = path});
}
PendingReply SimClient::set(const std::string& path, std::string_view data) {
  return submit({.kind = OperationKind::set, .path = path, .data = std::string(data)});
}
PendingReply SimClient::set_version(const std::string& path, std::string_view data,
                                    std::int32_t version) {
  return submit(
      {.kind = OperationKind::set, .path = path, .data = std::string(data), .version = version});
}
PendingReply SimClient::remove_version(const std::string& path, std::int32_t version) {
  return submit({.kind = OperationKind::remove, .path = path, .version = version});
}
PendingReply SimClient::exists(const std::string& path) {
  return submit({.kind = OperationKind::exists, .path = path});
}
PendingReply SimClient::get(const std::string& path) {
  return submit({.kind = OperationKind::get, .path = path});
}
PendingReply SimClient::get_and_watch(const std::string& path) {
  return submit({.kind = OperationKind::get_and_watch, .path = path});
}
PendingReply SimClient::exists_and_watch(const std::string& path) {
  return submit({.kind = OperationKind::exists_and_watch, .path = path});
}
PendingReply SimClient::children(const std::string& path) {
  return submit({.kind = OperationKind::children, .path = path});
}
PendingReply SimClient::sync(const std::string& path) {
  return submit({.kind = OperationKind::sync, .path = path});
}
PendingReply SimClient::prove(const std::string& path) {
  return submit({.kind = OperationKind::check, .path = path});
}
PendingReply SimClient::mark_and_remove(const std::string& path, std::string_view data) {
  return submit({.kind = OperationKind::mark_and_remove, .path = path, .data = std::string(data)});
}

// That the node is marked first shows in what its watchers are told.
PendingReply SimClient::mark_and_replace(const std::string& path, std::string_view,
                                         const std::string& heir, std::string_view text,
                                         Mode mode) {
  return submit({.kind = OperationKind::mark_and_replace,
                 .path = path,
                 .data = std::string(text),
                 .heir = heir,
                 .mode = static_cast<Operation::Mode>(mode)});
}

PendingReply SimClient::change_if(const Check& check, const Change& change) {
  static constexpr std::array kKinds = {OperationKind::create, OperationKind::set,
                                        OperationKind::remove, OperationKind::mark_and_replace};
  const bool replaces = change.kind == Change::Kind::replace;
  Operation operation;
  operation.kind = kKinds.at(static_cast<std::size_t>(change.kind));
  operation.path = change.path;
  operation.data = replaces ? change.text : change.data;
  operation.heir = change.heir;
  operation.version = change.version;
  operation.mode = static_cast<Operation::Mode>(change.mode);
  operation.checked = check.path;
  operation.checked_version = check.version;
  return submit(std::move(operation));
}

void SimClient::forget_watch(const std::string& path) {
  if (state_ == State::connected) {
    submit({.kind = OperationKind::forget_watch, .path = path});
  } else {
    watches_.erase(path);
    absent_watches_.erase(path);
  }
}

void SimClient::dial() {
  const auto weak = weak_from_this();
  opened_ = process_.now();
  ++attempts_;
  const int to = servers_.front();
  std::rotate(servers_.begin(), servers_.begin() + 1, servers_.end());
  wire_ = std::make_shared<Wire>(ends_, process_, to, [weak](Arrival arrival) {
    const auto self = weak.lock();
    if (!self) return;
    // Into the kernel's buffer, also while the process is paused.
    self->inbox_.push_back(std::move(arrival));
    self->process_.deliver([weak] {
      if (const auto alive = weak.lock()) alive->step();
    });
  });
  wire_->open(session_, options_.session_timeout, seen_);
}

void SimClient::step() {
  if (state_ == State::closed || state_ == State::over) return;
  const auto keep = shared_from_this();
  while (!inbox_.empty() && wire_) {
    auto arrival = std::move(inbox_.front());
    inbox_.pop_front();
    last_heard_ = process_.now();
    take(std::move(arrival));
  }
  look_at_clock();
  tell_listener();
  arm();
}

void SimClient::take(Arrival arrival) {
  switch (arrival.kind) {
    case Arrival::Kind::closed:
      return lose(ZCONNECTIONLOSS);
    case Arrival::Kind::session:
      return on_session(arrival.session, arrival.timeout);
    case Arrival::Kind::change:
      if (watches_.erase(arrival.change.path) + absent_watches_.erase(arrival.change.path) == 0) {
        return;
      }
      watch_events_.emplace_back(
          arrival.change.path, arrival.change.deleted ? WatchEvent::deleted : WatchEvent::changed);
      return;
    case Arrival::Kind::reply:
      break;
  }
  seen_ = std::max(seen_, arrival.outcome.zxid);
  if (pending_.empty() || pending_.front().number != arrival.request) return;  // a ping's
  auto request = std::move(pending_.front());
  pending_.pop_front();
  const auto& outcome = arrival.outcome;
  Reply reply;
  reply.rc = static_cast<int>(outcome.code);
  reply.text = outcome.text;
  reply.children = outcome.children;
  reply.stat = {outcome.stat.created, outcome.stat.created_ms, outcome.stat.owner,
                outcome.stat.version};
  const bool agreed =
      reply.rc == ZOK || (request.operation.kind == OperationKind::check && reply.rc == ZNONODE);
  const bool committed = request.operation.is_write() && agreed;
  finish(std::move(request), std::move(reply), committed);
}

void SimClient::finish(Request request, Reply reply, bool committed) {
  waiting_ = process_.now();
  const bool lost = zookeeper::is_loss(reply.rc);
  if (!lost) listener_->on_answer(request.sent, waiting_, committed);
  const auto& path = request.operation.path;
  if (request.operation.kind == OperationKind::get_and_watch) {
    if (reply.rc == ZOK) watches_.insert(path);
    const bool is_written = reply.rc == ZOK && reply.stat.version > 0;
    const auto event = is_written            ? WatchEvent::written
                       : reply.rc == ZOK     ? WatchEvent::set
                       : reply.rc == ZNONODE ? WatchEvent::absent
                                             : WatchEvent::failed;
    watch_events_.emplace_back(path, event);
  }
  if (request.operation.kind == OperationKind::exists_and_watch) {
    if (!lost) (reply.rc == ZOK ? watches_ : absent_watches_).insert(path);
    watch_events_.emplace_back(path, lost ? WatchEvent::failed : WatchEvent::set);
  }
  if (request.operation.kind == OperationKind::forget_watch) {
    watches_.erase(path);
    absent_watches_.erase(path);
  }
  request.result.set(std::move(reply));
}

void SimClient::on_session(std::int64_t session, milliseconds timeout) {
  if (session == 0) {
    state_ = State::over;
    drop();
    lose(ZSESSIONEXPIRED);
    return;
  }
  if (created_ == TimePoint{}) created_ = opened_;
  session_ = session;
  timeout_ = timeout;
  state_ = State::connected;
  attempts_ = 0;
  last_sent_ = process_.now();
  if (watches_.empty() && absent_watches_.empty()) return;
  Operation again;
  again.kind = OperationKind::set_watches;
  again.watches.assign(watches_.begin(), watches_.end());
  again.absent.assign(absent_watches_.begin(), absent_watches_.end());
  again.seen = seen_;
  wire_->send(++last_number_, std::move(again));
}

void SimClient::lose(int rc) {
  drop();
  if (state_ == State::connected) state_ = State::connecting;
  dial_at_ = process_.now() + ends_.world.between(milliseconds(30), milliseconds(130));
  for (auto& request : std::exchange(pending_, {})) {
    Reply reply;
    reply.rc = rc;
    finish(std::move(request), std::move(reply), false);
  }
}

/// As LibraryClient::patience_ends.
TimePoint SimClient::patience_ends() const {
  const auto others = static_cast<int>(servers_.size()) - 1;
  if (!wire_ || others == 0) return kNever;
  if (state_ == State::connecting) {
    const auto first =
        std::max<Duration>(options_.session_timeout / (4 * others), milliseconds(50));
    const auto rounds = std::min(attempts_ / (others + 1), 10);
    return opened_ + std::min<Duration>(first * (1 << rounds), options_.session_timeout * 2 / 3);
  }
  return pending_.empty() ? kNever : waiting_ + options_.session_timeout * 3 / 10;
}

void SimClient::look_at_clock() {
  const auto now = process_.now();
  if (state_ == State::over) return;
  if (wire_ && now >= patience_ends()) lose(ZCONNECTIONLOSS);
  if (!wire_) {
    if (now >= dial_at_) dial();
    return;
  }
  if (state_ != State::connected) return;
  if (now >= last_heard_ + timeout_ * 2 / 3) return lose(ZOPERATIONTIMEOUT);
  if (pending_.empty() && now >= last_sent_ + timeout_ / 3) {
    last_sent_ = now;
    wire_->send(++last_number_, {});
  }
}

void SimClient::arm() {
  process_.cancel(std::exchange(timer_, 0));
  if (state_ == State::over || state_ == State::closed) return;
  auto due = dial_at_;
  if (wire_) due = patience_ends();
  if (wire_ && state_ == State::connected) {
    due = std::min(due, last_heard_ + timeout_ * 2 / 3);
    if (pending_.empty()) due = std::min(due, last_sent_ + timeout_ / 3);
  }
  if (due == kNever) return;
  timer_ = process_.call_at(due, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->timer_ = 0;
      self->step();
    }
  });
}

void SimClient::tell_listener() {
  for (const auto& [path, event] : std::exchange(watch_events_, {})) {
    if (state_ == State::closed) return;
    listener_->on_watch(path, event);
  }
  if (state_ == State::closed || state_ == told_) return;
  const auto before = std::exchange(told_, state_);
  if (state_ == State::over) {
    listener_->on_session_over(false);
  } else if (state_ == State::connected) {
    listener_->on_connected();
  } else if (before == State::connected) {
    listener_->on_disconnected();
  }
}

}  // namespace dlock::simulation
