// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/zookeeper/wire.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace dlock::simulation {

using ensemble::Operation;

Wire::Wire(Ends ends, Process& process, int server, OnArrival on_arrival)
    : ends_(ends), process_(&process), server_(server), on_arrival_(std::move(on_arrival)) {}

bool Wire::is_cut() const { return process_ != nullptr && ends_.network.is_cut(*process_); }

void Wire::open(std::int64_t session, milliseconds timeout, std::int64_t seen) {
  session_ = session;
  const auto fate = ends_.network.fate(*process_);
  fates_[0] = fate;
  to_server(fate, [self = shared_from_this(), session, timeout, seen] {
    self->ends_.servers.connect(self->server_, self, session, timeout, seen);
  });
  if (fate.request == Fate::Break::reset || fate.overtaken) reset();
}

void Wire::send(std::uint64_t request, Operation operation) {
  if (dead_ || process_ == nullptr) return;
  auto fate = ends_.network.fate(*process_);
  // Over TCP a request comes twice only if its connection broke in between: nobody hears of it.
  if (fate.twice && operation.kind == Operation::Kind::create) fate.reply = Fate::Break::reset;
  fates_[request] = fate;
  operation.session = session_;
  ends_.world.trace("{} -> server {}: {} {}", process_->name(), server_, to_string(operation.kind),
                    operation.path);
  if (fate.overtaken && !silent_there_ && !is_cut() && operation.is_write()) {
    // Once its session stands elsewhere, or here again, a server refuses what comes late.
    ends_.world.after(*fate.overtaken, [&servers = ends_.servers, operation] {
      if (servers.server_of(operation.session) < 0) servers.submit(operation, {});
    });
  }
  to_server(fate, [self = shared_from_this(), request, operation, twice = fate.twice] {
    self->ends_.servers.receive(*self, request, operation);
    if (twice && operation.is_write()) self->ends_.servers.submit(operation, {});
  });
  if (fate.request == Fate::Break::reset || fate.overtaken) reset();
}

void Wire::close() {
  to_server({}, [self = shared_from_this()] { self->ends_.servers.disconnect(*self); });
  process_ = nullptr;
  on_arrival_ = {};
}

void Wire::crash() {
  process_ = nullptr;
  on_arrival_ = {};
  silent_there_ = silent_back_ = true;
  ends_.world.after(ends_.network.latency(),
                    [self = shared_from_this()] { self->ends_.servers.disconnect(*self); });
}

void Wire::to_server(const Fate& fate, Job job) {
  if (fate.request == Fate::Break::lost || is_cut()) silent_there_ = true;
  if (silent_there_ || dead_ || fate.request != Fate::Break::none || fate.overtaken) return;
  last_there_ = std::max(last_there_, ends_.world.now() + fate.there);
  ends_.world.at(last_there_, [self = shared_from_this(), job = std::move(job)]() mutable {
    if (self->is_cut()) self->silent_there_ = true;
    if (!self->silent_there_ && !self->dead_) job();
  });
}

/// Both ends are told, now.
void Wire::reset() {
  if (dead_) return;
  dead_ = true;
  // Not from within what the server is doing.
  ends_.world.after({}, [self = shared_from_this()] { self->ends_.servers.disconnect(*self); });
  if (on_arrival_) on_arrival_({});
}

void Wire::to_client(Duration time, Arrival arrival) {
  if (process_ == nullptr || silent_back_) return;
  last_back_ = std::max(last_back_, ends_.world.now() + time);
  ends_.world.at(last_back_, [self = shared_from_this(), arrival = std::move(arrival)]() mutable {
    if (self->process_ == nullptr || self->dead_) return;
    if (self->is_cut()) self->silent_back_ = true;
    if (self->silent_back_) return;
    if (arrival.kind == Arrival::Kind::closed) self->dead_ = true;
    self->trace(arrival);
    self->on_arrival_(std::move(arrival));
  });
}

void Wire::trace(const Arrival& arrival) {
  static constexpr std::array<std::string_view, 4> kKinds = {"session", "reply", "change",
                                                             "closed"};
  ends_.world.trace("{} <- server {}: {} {} {}{}", process_->name(), server_,
                    kKinds.at(static_cast<std::size_t>(arrival.kind)),
                    static_cast<int>(arrival.outcome.code), arrival.outcome.text,
                    arrival.change.path);
}

void Wire::reply_with(const Fate& fate, Arrival arrival) {
  if (fate.reply == Fate::Break::reset) return reset();
  if (fate.reply == Fate::Break::lost) silent_back_ = true;
  to_client(fate.back, std::move(arrival));
}

void Wire::on_session(std::int64_t session, milliseconds timeout) {
  session_ = session;
  const auto fate = fates_[0];
  Arrival arrival;
  arrival.kind = Arrival::Kind::session;
  arrival.session = session;
  arrival.timeout = timeout;
  reply_with(fate, std::move(arrival));
}

void Wire::on_reply(std::uint64_t request, const ensemble::Outcome& outcome) {
  const auto fate = fates_[request];
  fates_.erase(request);
  Arrival arrival;
  arrival.kind = Arrival::Kind::reply;
  arrival.request = request;
  arrival.outcome = outcome;
  reply_with(fate, std::move(arrival));
}

void Wire::on_change(const ensemble::Change& change) {
  if (process_ == nullptr || dead_) return;
  const auto fate = ends_.network.push_fate(*process_);
  Arrival arrival;
  arrival.kind = Arrival::Kind::change;
  arrival.change = change;
  reply_with(fate, std::move(arrival));
}

void Wire::on_closed() {
  if (process_ != nullptr) to_client(ends_.network.latency(), {});
}

}  // namespace dlock::simulation
