// SPDX-License-Identifier: Apache-2.0
//
// One connection that speaks RESP. It sends commands in order, with one write for all that are
// ready, and receives the replies in the same order. When it ends, it knows for each command
// whether the command may have reached the server. Loop only; kept alive by its own I/O.
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

/// The result of a command.
struct Outcome {
  enum class Kind { reply, not_sent, lost };
  Kind kind = Kind::lost;
  Reply reply;
};

/// A result that may still arrive. Copies share it.
class Pending {
 public:
  explicit Pending(Env& env) : state_(detail::make_recycled<State>(env)) {}
  /// No caller waits for the result.
  Pending() noexcept = default;

  /// Sets the outcome. Only the first call has an effect.
  void set(Outcome&& outcome) const {
    if (!state_ || state_->outcome) return;
    state_->outcome.emplace(std::move(outcome));
    state_->signal.notify();
  }
  /// Waits for the outcome until the deadline. The caller must keep a copy meanwhile. Does not
  /// create another coroutine.
  asio::awaitable<bool> settled(TimePoint deadline) const {
    return state_->signal.wait_until(deadline);
  }
  /// Returns the outcome, once. Empty: it has not arrived yet.
  std::optional<Outcome> take() const { return std::move(state_->outcome); }
  /// Waits for the outcome and returns it. Empty if the deadline passed first; then a later outcome
  /// is dropped.
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
  /// Ends the connection, and completes all pending commands.
  void close(Failure why);

  bool is_open() const noexcept { return open_; }
  /// Why it is not open.
  const Failure& failure() const noexcept { return failure_; }
  /// For tags: never the same twice.
  std::uint64_t next_number() noexcept { return ++last_number_; }
  /// Returns whether the server has sent nothing since then, for long enough to be treated as
  /// silent.
  bool is_silent(TimePoint since, TimePoint now) const noexcept;

  /// Called once, when the connection has ended other than by its destructor. Never called inside a
  /// call of this class.
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
  std::size_t unwritten_ = 0;  ///< this number of `pending_`, at its end, are in `out_`
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
