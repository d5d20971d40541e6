// SPDX-License-Identifier: Apache-2.0
//
// One sent request, and its answer as it arrives, piece by piece. The answer of an abandoned
// request is still read, so that the next answer is assigned correctly. No sockets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/memcached/wire/codec.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// How the request was written, and how its answer is recognized.
struct Asked {
  bool is_meta = false;
  std::uint64_t tag = 0;  ///< tag of a meta command
  std::uint64_t era = 0;  ///< when it was sent
};

class Exchange {
 public:
  enum class Progress {
    more,      ///< the answer continues
    complete,  ///< the next piece is the next answer's
    lost,      ///< the beginning of the next answer is unknown
  };

  Exchange(Env& env, Asked asked) : asked_(asked), told_(env) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Returns whether data may follow with the next piece.
  virtual bool expects_data() const noexcept { return false; }
  /// Handles the next piece of the answer; any result except `more` is its end.
  Progress take(const Piece& piece);
  /// Ends it without an answer, or without all of it.
  void end(Answer answer) noexcept;

  bool is_over() const noexcept { return is_over_; }
  /// Until it is over, or the deadline: then false. One waits.
  asio::awaitable<bool> told(TimePoint deadline) { return told_.wait_until(deadline); }

  Answer answer;      ///< once it is over
  TimePoint since{};  ///< when it was sent

 protected:
  struct Judged {
    Progress progress = Progress::more;
    Answer answer;
  };
  virtual Judged judge(const Piece& piece) = 0;
  /// Converts the answer to a command with a one-line reply.
  Answer judge_line(std::string_view line) const;
  const Asked& asked() const noexcept { return asked_; }

 private:
  const Asked asked_;
  Signal told_;
  bool is_over_ = false;
};

/// add, cas, remove.
class LineExchange final : public Exchange {
 public:
  using Exchange::Exchange;

 private:
  Judged judge(const Piece& piece) override;
};

class NumberExchange final : public Exchange {
 public:
  using Exchange::Exchange;
  bool expects_data() const noexcept override { return asked().is_meta; }

  std::uint64_t value = 0;

 private:
  Judged judge(const Piece& piece) override;
};

/// The time that an item lives on. `refused`: it never expires.
class TimeExchange final : public Exchange {
 public:
  using Exchange::Exchange;

  std::uint64_t value = 0;

 private:
  Judged judge(const Piece& piece) override;
};

class ItemsExchange final : public Exchange {
 public:
  ItemsExchange(Env& env, Asked asked, std::vector<std::string> keys)
      : Exchange(env, asked), keys_(std::move(keys)) {}
  bool expects_data() const noexcept override { return true; }

  std::map<std::string, Item, std::less<>> items;

 private:
  Judged judge(const Piece& piece) override;

  const std::vector<std::string> keys_;
};

class StatsExchange final : public Exchange {
 public:
  /// `probes`: `mn` was sent behind it, which only a server with meta commands answers.
  StatsExchange(Env& env, Asked asked, ServerInfo known, bool probes)
      : Exchange(env, asked), info(std::move(known)), probes_(probes) {}

  ServerInfo info;        ///< earlier facts, and those of the reply
  bool has_meta = false;  ///< it knows meta commands

 private:
  Judged judge(const Piece& piece) override;

  const bool probes_;
  bool ended_ = false;
  int lines_ = 0;
};

}  // namespace dlock::memcached
