// SPDX-License-Identifier: Apache-2.0
//
// One connection that speaks RESP: commands go out in order, as many in one write as there are, and
// replies come back in the same order. Knows for each command whether it may have reached the
// server when the connection ends. Loop only; kept alive by its own I/O.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/redis/wire/codec.hpp"
#include "backends/redis/wire/stream.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/net/write_pace.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {

/// What became of a command.
struct Outcome {
  enum class Kind { reply, not_sent, lost };
  Kind kind = Kind::lost;
  Reply reply;
};

/// An outcome that is waited for. Copies share it.
class Pending {
 public:
  explicit Pending(Env& env) : state_(detail::make_recycled<State>(env)) {}
  /// Nobody waits for it.
  Pending() noexcept = default;

  /// The first counts.
  void set(Outcome&& outcome) const {
    if (!state_ || state_->outcome) return;
    state_->outcome.emplace(std::move(outcome));
    state_->signal.notify();
  }
  /// Until it is there, or the deadline; a copy must be kept meanwhile. No coroutine of its own.
  asio::awaitable<bool> settled(TimePoint deadline) const {
    return state_->signal.wait_until(deadline);
  }
  /// Empty: it is not there yet. Once.
  std::optional<Outcome> take() const { return std::move(state_->outcome); }
  /// Both. Empty if the deadline came first; what comes later is dropped.
  asio::awaitable<std::optional<Outcome>> get_until(TimePoint deadline) const {
    const auto kept = *this;
    co_await kept.settled(deadline);
    co_return kept.take();
  }

 private:
  struct State {
    explicit State(Env& env) : signal(env) {}
    Signal signal;
    std::optional<Outcome> outcome;
  };
  std::shared_ptr<State> state_;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Env& env, std::shared_ptr<Stream> stream);
  ~Connection();

  /// Starts reading.
  void start();
  /// On a closed connection: answered `not_sent`.
  Pending send(const Command& command);
  Pending send_words(Words words);
  /// Both in one write; the outcome is that of the second.
  Pending send_both(Words first, Words second);
  /// The requests of this turn are written together.
  void gather() noexcept { pace_.gather(); }
  /// Ends it; what is pending is told.
  void close(Failure why);

  bool is_open() const noexcept { return open_; }
  /// Why it is not open any more.
  const Failure& failure() const noexcept { return failure_; }
  /// For tags: never the same twice.
  std::uint64_t next_number() noexcept { return ++last_number_; }
  /// The server has said nothing since then, and that is long enough to say something about it.
  bool is_silent(TimePoint since, TimePoint now) const noexcept;

  /// Called once, never inside a call of ours, when it has ended other than by its destructor.
  Job on_end;
  /// Set on a subscriber: called for each `message`, with its payload.
  std::function<void(const std::string&)> on_message;

 private:
  /// True: what was asked is to be written at once.
  bool add(Words words, Pending pending);
  void write_asked(bool at_once);
  void flush();
  void on_written(error_code ec);
  void read();
  void on_read(error_code ec, std::size_t size);
  bool take_replies();
  void take(Reply&& reply);

  Env& env_;
  std::shared_ptr<Stream> stream_;
  ReplyReader reader_;
  std::array<char, std::size_t{16} * 1024> buffer_{};
  std::string out_;            ///< not handed to the socket yet
  std::string writing_;        ///< with the socket
  std::size_t unwritten_ = 0;  ///< so many of `pending_`, at its end, are in `out_`
  std::deque<Pending> pending_;
  enum class Writing : std::uint8_t { no, soon, now };
  Writing writes_ = Writing::no;
  WritePace pace_;
  bool open_ = true;
  bool heard_ = false;
  bool replied_ = false;
  Failure failure_;
  TimePoint last_heard_;
  std::uint64_t last_number_ = 0;
};

}  // namespace dlock::redis
