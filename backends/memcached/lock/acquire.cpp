// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/acquire.hpp"

#include <fmt/format.h>

#include "backends/memcached/error.hpp"
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

  AcquireResult run() {
    const bool won = win();
    if (won && take_token()) {
      result_.status = ClaimStatus::granted;
      result_.info = server_.info();
    }
    return std::move(result_);
  }

 private:
  // Each turn asks at least one question; the last answer counts even if it was slow.
  bool win() {
    constexpr int kTurns = 4;
    for (int turn = 0; turn < kTurns; ++turn) {
      const bool last = turn == kTurns - 1;
      const auto verdict = order_.adoption ? adopt(last) : in_doubt_ ? look(last) : add();
      if (verdict == Verdict::won) return true;
      if (verdict == Verdict::stop) return false;
    }
    stop(ClaimStatus::unknown, failure(Error::unexpected, "the key changes all the time"));
    return false;
  }

  enum class Verdict { won, stop, again };

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

  Verdict add() {
    value_.since_ms = 0;
    const auto text = stamped();
    auto answer = server_.add(order_.key, text, exptime_of(value_.lease));
    switch (answer.outcome) {
      case Outcome::done:
        if (!was_slow()) return Verdict::won;
        in_doubt_ = true;
        return Verdict::again;
      case Outcome::not_stored:
        // Ours, if an earlier add of unknown outcome has come in meanwhile.
        if (!order_.in_doubt && !result_.late_add) return stop(ClaimStatus::busy);
        in_doubt_ = true;
        return Verdict::again;
      case Outcome::unknown:
        in_doubt_ = true;
        result_.late_add = true;
        if (!is_timeout(answer.failure) && server_.now() < server_.deadline()) {
          return Verdict::again;
        }
        return stop(ClaimStatus::unknown, std::move(answer.failure));
      default:
        return stop_for(std::move(answer));
    }
  }

  /// Something of ours may be there.
  Verdict look(bool last) {
    auto found = server_.gets({order_.key});
    if (!found.answer.done()) return stop_for(std::move(found.answer));
    const auto* item = found.get(order_.key);
    if (item == nullptr) {
      in_doubt_ = false;
      return Verdict::again;
    }
    const auto there = read_value(item->value);
    if (!there || there->owner.id != value_.owner.id) return stop(ClaimStatus::busy);
    return begin_anew(*there, *item, last);
  }

  /// Nobody knows how much of its time is left.
  Verdict begin_anew(const Value& there, const Item& item, bool last) {
    value_.since_ms = there.since_ms;
    return replace(item, last);
  }

  /// By our value, if nobody was faster.
  Verdict replace(const Item& item, bool last) {
    const auto text = stamped();
    auto answer = server_.cas(order_.key, text, exptime_of(value_.lease), item.cas);
    switch (answer.outcome) {
      case Outcome::done:
        if (!was_slow() || last || confirmed_) return Verdict::won;
        confirmed_ = true;
        return Verdict::again;
      case Outcome::exists:
      case Outcome::not_found:
        return Verdict::again;
      case Outcome::unknown:
        return stop(ClaimStatus::unknown, std::move(answer.failure));
      default:
        return stop_for(std::move(answer));
    }
  }

  /// The exported grant is there, or was and is ours since a request that was not answered.
  Verdict adopt(bool last) {
    auto found = server_.gets({order_.key});
    if (!found.answer.done()) return stop_for(std::move(found.answer));
    const auto* item = found.get(order_.key);
    const auto there = item == nullptr ? std::nullopt : read_value(item->value);
    const auto& exported = *order_.adoption;
    if (there && there->owner.id == value_.owner.id) return begin_anew(*there, *item, last);
    const bool is_it = there && there->owner.id == exported.owner_id && !there->proof.empty() &&
                       there->proof == exported.proof;
    if (is_it) {
      value_.since_ms = 0;
      return replace(*item, last);
    }
    std::optional<std::uint64_t> holder;
    if (item != nullptr) holder = 0;  // its token is not in the value
    return stop(ClaimStatus::failed, not_adoptable(holder, exported.token));
  }

  Verdict stop_for(Answer answer) {
    // An add that went before may have happened all the same, or did and was answered too slowly.
    bool added = result_.late_add || (in_doubt_ && !order_.in_doubt);
    if (added) return stop(ClaimStatus::unknown, std::move(answer.failure));
    const bool hopeless = answer.outcome == Outcome::refused &&
                          answer.failure.error != make_error_code(Error::out_of_memory);
    return stop(hopeless ? ClaimStatus::failed : ClaimStatus::unavailable,
                std::move(answer.failure));
  }

  /// The lock is ours. False: it was given back, or the token is still to be asked for.
  bool take_token() {
    auto number = count(1);
    if (number.answer.done()) {
      if (const auto by = token_raise(number.value, order_.min_token); by > 0) {
        auto lifted = lift_counter(server_, order_.token_key, order_.min_token);
        if (lifted.done()) {
          number = count(1);
        } else {
          number.answer = std::move(lifted);
        }
      }
    }
    if (number.answer.done() && number.value < kTokenEnd) {
      result_.token = number.value;
      return true;
    }
    if (number.answer.outcome == Outcome::unknown ||
        number.answer.outcome == Outcome::unavailable) {
      stop(ClaimStatus::unknown, std::move(number.answer.failure));
      return false;
    }
    const auto given_back = release(server_, {order_.key, value_.owner.id});
    const bool gone = given_back.status == ReleaseStatus::released;
    auto text = number.answer.done()
                    ? fmt::format("the counter {} stands at {}", order_.token_key, number.value)
                    : order_.token_key + ": " + number.answer.failure.text;
    stop(gone ? ClaimStatus::failed : ClaimStatus::unknown,
         failure(Error::token_broken, std::move(text)));
    return false;
  }

  /// Counts up, and makes the counter if there is none. A repetition skips a number, no more.
  Number count(std::uint64_t by) {
    Number number;
    for (int attempt = 0; attempt < 3; ++attempt) {
      number = server_.increment(order_.token_key, by);
      if (number.answer.outcome == Outcome::not_found) {
        number.value = token_seed(server_.wall_clock_us(), order_.min_token);
        number.answer = server_.add(order_.token_key, std::to_string(number.value),
                                    token_exptime(number.value, server_.wall_clock_us()));
      }
      const bool again =
          number.answer.outcome == Outcome::not_stored ||
          (number.answer.outcome == Outcome::unknown && !is_timeout(number.answer.failure));
      if (!again) break;
    }
    return number;
  }

  Commands& server_;
  AcquireOrder order_;
  Value& value_ = order_.value;
  bool in_doubt_;
  bool confirmed_ = false;
  AcquireResult result_;
};

}  // namespace

AcquireResult acquire(Commands& server, AcquireOrder order) {
  return Acquirer(server, std::move(order)).run();
}

}  // namespace dlock::memcached
