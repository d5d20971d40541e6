// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/connection.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "backends/redis/error.hpp"

namespace dlock::redis {
namespace {

/// The first byte of a TLS record: an alert, or a handshake.
bool looks_like_tls(std::string_view bytes) {
  return !bytes.empty() && (bytes.front() == 0x15 || bytes.front() == 0x16);
}

/// Shorter than this, silence says nothing about the server.
constexpr std::chrono::milliseconds kShortestSilence{100};

bool is_end(const error_code& ec) {
  return ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
}

}  // namespace

Connection::Connection(Env& env, std::shared_ptr<Stream> stream)
    : env_(env), stream_(std::move(stream)), last_heard_(env.now()) {}

Connection::~Connection() = default;

void Connection::start() { read(); }

bool Connection::is_silent(TimePoint since, TimePoint now) const noexcept {
  return last_heard_ < since && now - since >= kShortestSilence;
}

Pending Connection::send(const Command& command) {
  const std::vector<Word> words(command.begin(), command.end());
  return send_words({words});
}

Pending Connection::send_words(Words words) { return send_both({}, words); }

Pending Connection::send_both(Words first, Words second) {
  Pending pending(env_);
  if (!open_) {
    pending.set({Outcome::Kind::not_sent, {}});
    return pending;
  }
  if (first.size() > 0) add(first, Pending());
  write_asked(add(second, pending));
  return pending;
}

bool Connection::add(Words words, Pending pending) {
  pending_.push_back(std::move(pending));
  append_words(words, out_);
  ++unwritten_;
  return pace_.asked(pending_.size(), unwritten_);
}

void Connection::write_asked(bool at_once) {
  if (writes_ == Writing::now) return;
  if (at_once) return flush();
  if (writes_ == Writing::soon) return;
  env_.post([self = shared_from_this()] {
    if (self->writes_ == Writing::soon) self->flush();
  });
  writes_ = Writing::soon;
}

void Connection::flush() {
  writes_ = open_ && !out_.empty() ? Writing::now : Writing::no;
  if (writes_ == Writing::no) return;
  writing_.clear();
  std::swap(writing_, out_);
  unwritten_ = 0;
  error_code ec;
  asio::const_buffer left = asio::buffer(writing_);
  left += stream_->write_now(left, ec);
  if (ec || left.size() == 0) return on_written(ec);
  stream_->write_all(left, [self = shared_from_this()](error_code all) { self->on_written(all); });
}

void Connection::on_written(error_code ec) {
  if (ec) {
    writes_ = Writing::no;
    close({Error::connection_lost, ec.message()});
  } else {
    flush();
  }
}

void Connection::read() {
  stream_->read_some(
      asio::buffer(buffer_),
      [self = shared_from_this()](error_code ec, std::size_t size) { self->on_read(ec, size); });
}

void Connection::on_read(error_code ec, std::size_t size) {
  if (!open_) return;
  if (ec) {
    auto text = is_end(ec) ? std::string("the server closed the connection") : ec.message();
    if (!heard_) text += " before it answered anything; does the port speak TLS (rediss://)?";
    return close({Error::connection_lost, std::move(text)});
  }
  const std::string_view bytes(buffer_.data(), size);
  if (!heard_ && looks_like_tls(bytes)) {
    return close({Error::tls_failed, "the port speaks TLS; write rediss:// instead of redis://"});
  }
  heard_ = true;
  last_heard_ = env_.now();
  reader_.feed(bytes);
  if (take_replies()) read();
}

bool Connection::take_replies() {
  while (auto reply = reader_.next()) {
    replied_ = true;
    take(std::move(*reply));
    if (!open_) return false;
  }
  if (reader_.error().empty()) return true;
  close({Error::unexpected, replied_
                                ? reader_.error()
                                : reader_.error() + "; does the port belong to a Redis server?"});
  return false;
}

void Connection::take(Reply&& reply) {
  const bool message = on_message && reply.kind == Reply::Kind::array && reply.items.size() == 3 &&
                       reply.items[0].text == "message";
  if (message) return on_message(reply.items[2].text);
  if (pending_.empty()) {
    // Said before it was asked: full, or in protected mode; it closes next.
    return close({reply.is_error() ? judge(reply.text).error : Error::unexpected, reply.text});
  }
  const auto pending = std::move(pending_.front());
  pending_.pop_front();
  pending.set({Outcome::Kind::reply, std::move(reply)});
}

void Connection::close(Failure why) {
  if (!std::exchange(open_, false)) return;
  failure_ = std::move(why);
  stream_->close();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const bool sent = i + unwritten_ < pending_.size();
    pending_[i].set({sent ? Outcome::Kind::lost : Outcome::Kind::not_sent, {}});
  }
  pending_.clear();
  on_message = {};
  if (on_end) env_.post(std::move(on_end));
}

}  // namespace dlock::redis
