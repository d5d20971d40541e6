// SPDX-License-Identifier: Apache-2.0
#include "testkit/fault_proxy_connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>
#include <vector>

namespace dlock::testkit::detail {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

void close_with_reset(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

ProxyConnection::ProxyConnection(ConnectionId id, Socket client, std::shared_ptr<ProxyState> state,
                                 std::function<void(ConnectionId)> on_end)
    : id_(id),
      state_(std::move(state)),
      on_end_(std::move(on_end)),
      client_(std::move(client)),
      server_(client_.get_executor()),
      halves_{Half(client_.get_executor()), Half(client_.get_executor())} {}

void ProxyConnection::start(std::uint16_t server_port) {
  const tcp::endpoint server(asio::ip::address_v4::loopback(), server_port);
  server_.async_connect(server, [self = shared_from_this()](error_code error) {
    if (self->ended_) return;
    if (error) return self->reset();
    error_code ignored;
    self->client_.set_option(tcp::no_delay(true), ignored);
    self->server_.set_option(tcp::no_delay(true), ignored);
    self->read(Direction::to_server);
    self->read(Direction::to_client);
  });
}

void ProxyConnection::reset() {
  if (ended_) return;
  ended_ = true;
  close_with_reset(client_);
  close_with_reset(server_);
  for (Half& half : halves_) half.timer.cancel();
  on_end_(id_);
}

void ProxyConnection::reset_client() {
  if (ended_) return;
  close_with_reset(client_);  // its pending read ends, and queues the close for the server
  half(Direction::to_client).broken = true;
  pump(Direction::to_client);
}

void ProxyConnection::hold(Direction direction, bool on) {
  half(direction).hold = on;
  pump(direction);
}

void ProxyConnection::release_held() {
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    for (Item& item : half(direction).queue) item.hold = false;
    pump(direction);
  }
}

void ProxyConnection::pump(Direction direction) {
  Half& way = half(direction);
  if (ended_ || way.writing || way.finished) return;
  if (way.broken) return finish(direction);
  if (way.queue.empty() || way.hold || faults(direction).hold || way.queue.front().hold) return;
  if (way.queue.front().due > std::chrono::steady_clock::now()) return wait_until_due(direction);
  Item item = std::move(way.queue.front());
  way.queue.pop_front();
  if (item.kind == Item::Kind::reset) return reset();
  if (item.kind == Item::Kind::close) return finish(direction);
  write(direction, std::move(item.bytes));
}

void ProxyConnection::read(Direction direction) {
  source(direction).async_read_some(
      asio::buffer(half(direction).buffer),
      [self = shared_from_this(), direction](error_code error, std::size_t size) {
        if (self->ended_) return;
        Half& way = self->half(direction);
        if (error) {
          way.read_ended = true;
          self->push(direction, Item::Kind::close, {}, false);
          self->pump(direction);
          return self->end_when_done();
        }
        self->received(direction, {way.buffer.data(), size});
        if (!self->ended_) self->read(direction);
      });
}

void ProxyConnection::received(Direction direction, std::string_view bytes) {
  FlowCount& flow = state_->flow(direction);
  flow.bytes += bytes.size();
  ++flow.segments;
  if (direction == Direction::to_server && !client_spoke_last_) ++state_->stats.turns;
  client_spoke_last_ = direction == Direction::to_server;

  std::vector<Piece> pieces;
  if (const auto filter = state_->filter) {
    pieces = (*filter)(direction, id_, bytes);
  } else {
    pieces.push_back({std::string(bytes), Verdict::forward});
  }
  // The filter may have dropped this very connection; one that is closed on the far side only
  // goes on being read, so that the close of the near side is noticed.
  if (ended_ || half(direction).finished) return;
  for (Piece& piece : pieces) place(direction, std::move(piece));
  pump(direction);
}

void ProxyConnection::place(Direction direction, Piece piece) {
  Faults& fault = faults(direction);
  if (piece.verdict == Verdict::reset) return push(direction, Item::Kind::reset, {}, false);
  if (piece.verdict == Verdict::swallow || fault.swallow || piece.bytes.empty()) return;
  const bool hold = piece.verdict == Verdict::hold;
  bool reset = false;
  if (fault.reset_after) {
    reset = piece.bytes.size() >= *fault.reset_after;
    if (reset) piece.bytes.resize(*fault.reset_after);
    *fault.reset_after -= piece.bytes.size();
  }
  if (fault.duplicate) push(direction, Item::Kind::bytes, piece.bytes, hold);
  push(direction, Item::Kind::bytes, std::move(piece.bytes), hold);
  if (reset) {
    fault.reset_after.reset();
    push(direction, Item::Kind::reset, {}, false);
  }
}

void ProxyConnection::push(Direction direction, Item::Kind kind, std::string bytes, bool hold) {
  const auto due = std::chrono::steady_clock::now() + faults(direction).delay;
  half(direction).queue.push_back({kind, std::move(bytes), due, hold});
}

void ProxyConnection::wait_until_due(Direction direction) {
  Half& way = half(direction);
  way.timer.expires_at(way.queue.front().due);
  way.timer.async_wait([self = shared_from_this(), direction](error_code error) {
    if (!error) self->pump(direction);
  });
}

void ProxyConnection::write(Direction direction, std::string bytes) {
  Half& way = half(direction);
  way.writing = true;
  way.in_flight = std::move(bytes);
  asio::async_write(sink(direction), asio::buffer(way.in_flight),
                    [self = shared_from_this(), direction](error_code error, std::size_t) {
                      if (self->ended_) return;
                      Half& done = self->half(direction);
                      done.writing = false;
                      if (error) done.broken = true;
                      self->pump(direction);
                    });
}

// Passes the close on. The other way stays open: what is held there still has to arrive.
void ProxyConnection::finish(Direction direction) {
  half(direction).finished = true;
  half(direction).queue.clear();
  error_code ignored;
  sink(direction).shutdown(tcp::socket::shutdown_send, ignored);
  end_when_done();
}

// Not before both ends have closed: closing a socket with unread bytes resets it, and that could
// overtake the last bytes that were forwarded.
void ProxyConnection::end_when_done() {
  for (const Half& way : halves_) {
    if (!way.finished || !way.read_ended) return;
  }
  if (ended_) return;
  ended_ = true;
  error_code ignored;
  client_.close(ignored);
  server_.close(ignored);
  on_end_(id_);
}

}  // namespace dlock::testkit::detail
