// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>
#include <vector>

#include "backends/memcached/error.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::memcached {

using boost::system::error_code;

namespace {

/// The longest part of a server's line in an error.
constexpr std::size_t kLongestWords = 200;
/// A server that sends data, but owes this number of abandoned answers, is asked again on another
/// connection. It is too far behind, or never ends an answer.
constexpr std::ptrdiff_t kMostOverdue = 64;

std::string words_of(const error_code& ec) {
  return ec == asio::error::eof ? "disconnected by the server" : ec.message();
}

}  // namespace

Connection::Connection(Env& env) : env_(env), socket_(env.executor()) {}

Connection::~Connection() { shut(); }

asio::awaitable<Failure> Connection::connect(Endpoint server, TimePoint deadline) {
  const auto self = shared_from_this();
  dial_ = std::make_shared<TcpDial>(env_);
  const auto dial = dial_;
  auto reached = co_await dial->run(server, deadline);
  dial_ = nullptr;
  if (reached.socket) {
    socket_ = std::move(*reached.socket);
    descriptor_ = socket_.native_handle();
    if (open_) read();
  }
  if (!open_) {
    shut();
    co_return failure_;
  }
  Failure why;
  if (reached.failed == TcpDial::Step::none) co_return why;
  switch (reached.failed) {
    case TcpDial::Step::no_thread:
      why = memcached::failure(Error::no_thread, std::move(reached.error));
      break;
    case TcpDial::Step::resolving:
      why = memcached::failure(Error::unknown_host, server.host + ": " + reached.error);
      break;
    case TcpDial::Step::none:
    case TcpDial::Step::connecting:
      why = memcached::failure(Error::not_connected, std::move(reached.error));
      break;
  }
  close(why);
  co_return why;
}

void Connection::shut() noexcept {
  if (descriptor_ >= 0) keep_in_fork_child(std::exchange(descriptor_, -1));
  error_code ignored;
  socket_.close(ignored);
}

void Connection::close(Failure why) {
  if (!std::exchange(open_, false)) return;
  failure_ = std::move(why);
  if (dial_) dial_->stop();
  shut();
  // A server that is full has carried out nothing.
  const bool is_full = failure_.error == make_error_code(Error::no_places);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    auto& exchange = *pending_[i];
    if (exchange.is_over()) continue;
    const bool maybe_done = i + unwritten_ < pending_.size() && !is_full;
    Answer answer;
    answer.outcome = maybe_done ? Outcome::unknown : Outcome::unavailable;
    answer.failure = failure_;
    exchange.end(std::move(answer));
  }
  pending_.clear();
}

void Connection::send(std::shared_ptr<Exchange> exchange) {
  const auto now = env_.now();
  exchange->since = now;
  pending_.push_back(std::move(exchange));
  ++unwritten_;
  write_asked();
}

void Connection::write_asked() {
  const bool at_once = pace_.asked(pending_.size(), unwritten_);
  if (writes_ == Writing::now) return;
  if (at_once) return flush();
  if (writes_ == Writing::soon) return;
  env_.post([self = shared_from_this()] {
    if (self->writes_ == Writing::soon && self->open_) self->flush();
  });
  writes_ = Writing::soon;
}

void Connection::flush() {
  writes_ = Writing::no;
  if (out_.empty()) return;
  writing_.clear();
  std::swap(writing_, out_);
  unwritten_ = 0;
  written_ = 0;
  write_rest();
}

void Connection::write_rest() {
  error_code ec;
  const auto left = asio::buffer(writing_.data() + written_, writing_.size() - written_);
  written_ += socket_.write_some(left, ec);
  if (ec == asio::error::would_block || ec == asio::error::try_again) ec = {};
  if (ec) return close(memcached::failure(Error::connection_lost, ec.message()));
  if (written_ == writing_.size()) return;
  socket_.async_wait(Tcp::socket::wait_write, [self = shared_from_this()](error_code) {
    self->writes_ = Writing::no;
    if (!self->open_) return;
    self->write_rest();
    if (self->writes_ == Writing::no) self->flush();
  });
  writes_ = Writing::now;
}

void Connection::read() {
  const auto room = reader_.room();
  socket_.async_read_some(
      asio::buffer(room.data(), room.size()),
      [self = shared_from_this()](error_code ec, std::size_t size) { self->on_read(ec, size); });
}

void Connection::on_read(error_code ec, std::size_t size) {
  if (!open_) return;
  if (ec) return close(memcached::failure(Error::connection_lost, words_of(ec)));
  reader_.received(size);
  last_heard_ = env_.now();
  take_answers();
  if (open_) read();
}

void Connection::take_answers() {
  while (!pending_.empty() && open_) {
    // Keeps the exchange alive: it may have no other owner by then.
    const auto first = pending_.front();
    const auto piece = reader_.next(first->expects_data());
    if (!piece) break;
    // Answered before it was asked.
    if (pending_.size() <= unwritten_) return end_for_unasked();
    const auto progress = first->take(*piece);
    if (progress == Exchange::Progress::more) continue;
    pending_.pop_front();
    if (progress == Exchange::Progress::lost) {
      return close(memcached::failure(Error::connection_lost,
                                      "an answer to another request did not fit: " +
                                          std::string(piece->line.substr(0, kLongestWords))));
    }
  }
  if (!open_) return;
  if (!reader_.error().empty()) {
    return close(memcached::failure(Error::unexpected, reader_.error()));
  }
  if (pending_.empty() && !reader_.is_empty()) end_for_unasked();
}

/// Said before it was asked: full, as a rule.
void Connection::end_for_unasked() {
  const auto piece = reader_.next(false);
  std::string text = piece ? std::string(piece->line.substr(0, kLongestWords)) : std::string();
  const bool is_full = text.find("open connections") != text.npos;
  if (text.empty()) text = "unrequested bytes";
  close(memcached::failure(is_full ? Error::no_places : Error::unexpected, std::move(text)));
}

void Connection::give_up(Exchange& exchange) {
  if (exchange.is_over()) return;
  Answer answer;
  answer.outcome = Outcome::unknown;
  answer.failure.error = make_error_code(Error::no_answer);
  exchange.end(std::move(answer));
  const auto is_overdue = [](const auto& asked) { return asked->is_over(); };
  const auto overdue = std::count_if(pending_.begin(), pending_.end(), is_overdue);
  if (last_heard_ > exchange.since && overdue < kMostOverdue) return;
  Failure why;
  why.error = make_error_code(Error::connection_lost);
  close(std::move(why));
}

}  // namespace dlock::memcached
