// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/acquire.hpp"

#include <fmt/format.h>

#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/look.hpp"
#include "backends/memcached/lock/migration.hpp"
#include "backends/memcached/lock/release.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/token.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {
namespace {

bool is_timeout(const Failure& why) { return why.error == make_error_code(Error::no_answer); }

/// One attempt to take one lock.
class Acquirer {
 public:
  Acquirer(Commands& server, AcquireOrder order)
      : server_(server), order_(std::move(order)), in_doubt_(order_.in_doubt) {}

  asio::awaitable<AcquireResult> run() {
    bool won = co_await win();
    if (won) won = co_await take_token();
    if (won) {
      result_.status = ClaimStatus::granted;
      result_.info = server_.info();
    }
    co_return std::move(result_);
  }

 private:
  // Each turn asks at least one question; the last answer counts even if it was slow.
  asio::awaitable<bool> win() {
    constexpr int kTurns = 4;
    for (int turn = 0; turn < kTurns; ++turn) {
      const bool last = turn == kTurns - 1;
      if (!server_.may_grant()) {
        const bool may_ask = co_await enter();
        if (!may_ask) co_return false;
      }
      const auto verdict = co_await take_turn(last);
      if (verdict == Verdict::won) co_return true;
      if (verdict == Verdict::stop) co_return false;
    }
    stop(ClaimStatus::unknown, failure(Error::unexpected, "the key changes all the time"));
    co_return false;
  }

  /// Runs the self-test. Twice at most: a server that denies a command may close the connection.
  asio::awaitable<bool> enter() {
    for (int attempt = 0; attempt < 2 && !server_.may_grant(); ++attempt) {
      auto answer = co_await server_.pass_self_test();
      if (answer.done()) continue;
      stop_for(std::move(answer));
      co_return false;
    }
    if (server_.may_grant()) co_return true;
    stop_for({Outcome::unavailable, failure(Error::connection_lost), {}});
    co_return false;
  }

  enum class Verdict { won, stop, again };

  asio::awaitable<Verdict> take_turn(bool last) {
    if (order_.adoption) return adopt(last);
    return in_doubt_ ? look(last) : add();
  }

  Verdict stop(ClaimStatus status, Failure why = {}) {
    result_.status = status;
    result_.failure = std::move(why);
    return Verdict::stop;
  }

  std::string stamped() {
    const auto now_ms = server_.wall_clock_us() / 1000;
    if (value_.since_ms == 0) value_.since_ms = now_ms;
    value_.renewed_ms = now_ms;
    result_.sent = server_.now();
    result_.since_ms = value_.since_ms;
    return write_value(value_);
  }

  bool was_slow() const { return server_.now() - result_.sent > kTrustedAnswer; }

  asio::awaitable<Verdict> add() {
    value_.since_ms = 0;
    const auto text = stamped();
    auto answer = co_await server_.add(order_.key, text, exptime_of(value_.lease));
    result_.number = answer.stored;
    switch (answer.outcome) {
      case Outcome::done:
        if (!was_slow()) co_return Verdict::won;
        in_doubt_ = true;
        co_return Verdict::again;
      case Outcome::not_stored:
        // It is this claim's value if an earlier add of unknown outcome was executed meanwhile.
        if (!order_.in_doubt && !result_.late_add) co_return stop(ClaimStatus::busy);
        in_doubt_ = true;
        co_return Verdict::again;
      case Outcome::unknown:
        in_doubt_ = true;
        result_.late_add = true;
        if (!is_timeout(answer.failure) && server_.now() < server_.deadline()) {
          co_return Verdict::again;
        }
        co_return stop(ClaimStatus::unknown, std::move(answer.failure));
      default:
        co_return stop_for(std::move(answer));
    }
  }

  /// The claim's own value may be there.
  asio::awaitable<Verdict> look(bool last) {
    auto found = co_await server_.gets(keys_);
    if (!found.answer.done()) co_return stop_for(std::move(found.answer));
    const auto* item = found.get(order_.key);
    if (item == nullptr) {
      in_doubt_ = false;
      co_return Verdict::again;
    }
    if (auto newer = newer_value(order_.key, item->value); !newer.empty()) {
      co_return stop_for({Outcome::refused, failure(Error::newer_format, std::move(newer)), {}});
    }
    const auto there = read_value(item->value);
    if (!there || there->owner.id != value_.owner.id) co_return stop(ClaimStatus::busy);
    if (there->broken) {
      const bool is_free = co_await give_up_marked(*item);
      co_return is_free ? Verdict::again : stop(ClaimStatus::busy);
    }
    co_return co_await begin_anew(*there, *item, last);
  }

  /// Frees our own record, which an operator has marked before we held the lock.
  asio::awaitable<bool> give_up_marked(const Item& item) {
    auto answer = co_await server_.cas(order_.key, item.value, kPastExpiry, item.number);
    co_return answer.done();
  }

  /// The rest of its lease is unknown.
  asio::awaitable<Verdict> begin_anew(const Value& there, const Item& item, bool last) {
    value_.since_ms = there.since_ms;
    return replace(item, last);
  }

  /// Replaces it with this claim's value, unless another client was faster.
  asio::awaitable<Verdict> replace(const Item& item, bool last) {
    const auto text = stamped();
    auto answer = co_await server_.cas(order_.key, text, exptime_of(value_.lease), item.number);
    result_.number = answer.stored;
    switch (answer.outcome) {
      case Outcome::done:
        if (!was_slow() || last || confirmed_) co_return Verdict::won;
        confirmed_ = true;
        co_return Verdict::again;
      case Outcome::exists:
      case Outcome::not_found:
        co_return Verdict::again;
      case Outcome::unknown:
        co_return stop(ClaimStatus::unknown, std::move(answer.failure));
      default:
        co_return stop_for(std::move(answer));
    }
  }

  /// The exported grant is there, or this claim has adopted it since with an unanswered request.
  asio::awaitable<Verdict> adopt(bool last) {
    auto found = co_await server_.gets(keys_);
    if (!found.answer.done()) co_return stop_for(std::move(found.answer));
    const auto* item = found.get(order_.key);
    auto newer = item == nullptr ? std::string() : newer_value(order_.key, item->value);
    if (!newer.empty()) {
      co_return stop(ClaimStatus::failed, failure(Error::newer_format, std::move(newer)));
    }
    const auto there = item == nullptr ? std::nullopt : read_value(item->value);
    const auto& exported = *order_.adoption;
    const bool is_broken = there && there->broken;
    if (there && there->owner.id == value_.owner.id) {
      if (!is_broken) co_return co_await begin_anew(*there, *item, last);
      co_await give_up_marked(*item);
    }
    const bool is_it = there && !is_broken && there->owner.id == exported.owner_id &&
                       !there->proof.empty() && there->proof == exported.proof;
    if (is_it) {
      value_.since_ms = 0;
      co_return co_await replace(*item, last);
    }
    std::optional<std::uint64_t> holder;
    if (item != nullptr) holder = 0;  // its token is not in the value
    co_return stop(ClaimStatus::failed, not_adoptable(holder, exported.token));
  }

  Verdict stop_for(Answer answer) {
    // An earlier add may have been executed all the same, or was answered too slowly.
    bool added = result_.late_add || (in_doubt_ && !order_.in_doubt);
    if (added) return stop(ClaimStatus::unknown, std::move(answer.failure));
    const bool hopeless = answer.outcome == Outcome::refused &&
                          answer.failure.error != make_error_code(Error::out_of_memory);
    return stop(hopeless ? ClaimStatus::failed : ClaimStatus::unavailable,
                std::move(answer.failure));
  }

  /// The claim has the lock. Returns false if it was released, or the token must still be
  /// requested.
  asio::awaitable<bool> take_token() {
    auto number = co_await count(1);
    if (number.answer.done()) {
      if (const auto by = token_raise(number.value, order_.min_token); by > 0) {
        auto lifted = co_await lift_counter(server_, order_.token_key, order_.min_token);
        if (lifted.done()) {
          number = co_await count(1);
        } else {
          number.answer = std::move(lifted);
        }
      }
    }
    if (number.answer.done() && number.value < kTokenEnd) {
      result_.token = number.value;
      co_return true;
    }
    if (number.answer.outcome == Outcome::unknown ||
        number.answer.outcome == Outcome::unavailable) {
      stop(ClaimStatus::unknown, std::move(number.answer.failure));
      co_return false;
    }
    auto why = co_await why_no_token(number);
    ReleaseOrder back{order_.key, value_.owner.id, result_.number};
    const auto given_back = co_await release(server_, std::move(back));
    const bool gone = given_back.status == ReleaseStatus::released;
    stop(gone ? ClaimStatus::failed : ClaimStatus::unknown, std::move(why));
    co_return false;
  }

  asio::awaitable<Failure> why_no_token(Number number) {
    if (number.answer.done()) {
      co_return failure(Error::token_broken, fmt::format("the counter {} has reached {}",
                                                         order_.token_key, number.value));
    }
    const std::vector<std::string> keys{order_.token_key};
    const auto found = co_await server_.gets(keys);
    const auto* item = found.answer.done() ? found.get(order_.token_key) : nullptr;
    auto why = broken_counter(order_.token_key, item);
    if (why.error == make_error_code(Error::token_broken)) {
      why.text += ": " + number.answer.failure.text;
    }
    co_return why;
  }

  /// Counts up, and makes the counter if there is none. A repetition skips a number, no more.
  asio::awaitable<Number> count(std::uint64_t by) {
    Number number;
    for (int attempt = 0; attempt < 3; ++attempt) {
      number = co_await server_.increment(order_.token_key, by);
      if (number.answer.outcome == Outcome::not_found) {
        number.value = token_seed(server_.wall_clock_us(), order_.min_token);
        const auto text = std::to_string(number.value);
        const auto exptime = token_exptime(number.value, server_.wall_clock_us());
        number.answer = co_await server_.add(order_.token_key, text, exptime);
      }
      const bool again =
          number.answer.outcome == Outcome::not_stored ||
          (number.answer.outcome == Outcome::unknown && !is_timeout(number.answer.failure));
      if (!again) break;
    }
    co_return number;
  }

  Commands& server_;
  AcquireOrder order_;
  const std::vector<std::string> keys_{order_.key};
  Value& value_ = order_.value;
  bool in_doubt_;
  bool confirmed_ = false;
  AcquireResult result_;
};

}  // namespace

asio::awaitable<AcquireResult> acquire(Commands& server, AcquireOrder order) {
  Acquirer acquirer(server, std::move(order));
  co_return co_await acquirer.run();
}

}  // namespace dlock::memcached
