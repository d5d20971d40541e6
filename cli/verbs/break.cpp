// SPDX-License-Identifier: Apache-2.0
//
// `dlock break`: marks the holder's record, and waits until the lock is free. --now frees it at
// once.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::ends_a_wait;
using program::Exit;
using program::print_line;
using program::signal_status;
using program::Signals;
using program::status;

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kTellAfter{1};
/// After a signal, for an answer that is under way.
constexpr milliseconds kLastAnswer{500};

/// Returns a hint where permits of a semaphore with that name are held.
std::string about_semaphore(LockManager& locks, const std::string& name) {
  try {
    if (locks.semaphore_status(name).holders.empty()) return {};
  } catch (const LockError&) {
    return {};
  }
  return "; a semaphore of that name exists, too, and permits of it are held: --semaphore";
}

[[noreturn]] void refuse(const LockError& why, const std::string& more) {
  throw LockError(why.code(), {why.lock(), why.store(), why.server_text() + more});
}

/// The token of the holder with that id.
std::uint64_t token_of(LockManager& locks, const Arguments& arguments) {
  if (arguments.holder.empty()) return arguments.token;
  const auto now = locks.semaphore_status(arguments.name);
  for (const auto& holder : now.holders) {
    if (holder.owner.id == arguments.holder) return holder.token.value_or(0);
  }
  std::string text = "no client with that id holds permits";
  for (const auto& holder : now.holders) {
    text += fmt::format("{} {} (token {})", text.ends_with("permits") ? "; holders:" : ",",
                        holder.owner.id, holder.token.value_or(0));
  }
  throw LockError(make_error_code(now.holders.empty() ? errc::not_found : errc::not_holder),
                  {arguments.name, {}, std::move(text)});
}

/// One break: the mark, the wait, and what is printed. Another thread waits for the store, so that
/// a signal is handled at once.
class Breaking {
 public:
  Breaking(LockManager& locks, const Arguments& arguments, std::uint64_t token)
      : locks_(locks), arguments_(arguments), token_(token) {
    options_.reason = arguments.reason;
    options_.at_once = arguments.now;
    options_.wait = arguments.wait;
    options_.on_marked = [this](const Evicted& marked) {
      const std::lock_guard lock(mutex_);
      marked_ = true;
      if (marked.within) latest_ = BoottimeClock::now() + *marked.within;
    };
  }

  int run(Signals& signals) {
    std::thread waiter([this] { wait(); });
    const auto tell_at = BoottimeClock::now() + kTellAfter;
    int ended_by = 0;
    for (bool may_tell = !arguments_.quiet; !has_ended();) {
      const auto left = std::max<Duration>(tell_at - BoottimeClock::now(), Duration::zero());
      wait_for({signals.descriptor(), ended_.descriptor()},
               may_tell ? std::optional<Duration>(left) : std::nullopt);
      while (const auto signal = signals.next()) {
        if (ends_a_wait(signal->number)) ended_by = signal->number;
      }
      if (ended_by != 0) break;
      if (!may_tell || has_ended() || BoottimeClock::now() < tell_at) continue;
      may_tell = false;
      tell_of_wait();
    }
    if (ended_by != 0) {
      stop_.request_stop();
      wait_for({ended_.descriptor()}, kLastAnswer);
    }
    if (!has_ended()) {
      report_interruption();
      std::fflush(stdout);
      ::_exit(signal_status(ended_by));  // the thread waits for an answer
    }
    waiter.join();
    if (failure_) std::rethrow_exception(failure_);
    if (result_.is_free) return report(result_.within);
    report_mark(ended_by != 0 ? "interrupted" : "not free within --wait");
    return ended_by != 0 ? signal_status(ended_by) : status(Exit::not_obtained);
  }

 private:
  void wait() noexcept {
    Evicted result;
    std::exception_ptr failure;
    try {
      result = evict();
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      result_ = result;
      failure_ = failure;
      has_ended_ = true;
    }
    ended_.notify();
  }

  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }

  Evicted evict() {
    const auto stop = stop_.get_token();
    if (arguments_.of_semaphore) {
      return locks_.evict_permits(arguments_.name, token_, options_, stop);
    }
    try {
      return locks_.evict(arguments_.name, token_, options_, stop);
    } catch (const LockError& error) {
      if (error.code() != errc::not_found && error.code() != errc::not_holder) throw;
      const auto more = about_semaphore(locks_, arguments_.name);
      if (more.empty()) throw;
      refuse(error, more);
    }
  }

  std::optional<milliseconds> left() {
    const std::lock_guard lock(mutex_);
    if (!latest_) return std::nullopt;
    return std::chrono::ceil<milliseconds>(
        std::max<Duration>(*latest_ - BoottimeClock::now(), Duration::zero()));
  }

  std::string at_most() {
    const auto time = left();
    return time ? fmt::format(", {} at most", rounded(*time)) : std::string();
  }

  bool is_marked() {
    const std::lock_guard lock(mutex_);
    return marked_;
  }

  void tell_of_wait() {
    complain(is_marked() ? fmt::format("{}: marked; waiting until its holder has released it{}",
                                       arguments_.name, at_most())
                         : fmt::format("{}: waiting for an answer of the store", arguments_.name));
  }

  void report_interruption() {
    complain(is_marked() ? fmt::format("{}: interrupted; the mark stays", arguments_.name)
                         : fmt::format("{}: interrupted before the store has answered; the lock "
                                       "may be broken (see dlock status)",
                                       arguments_.name));
  }

  /// `within`: with --now, how long the old holder may still work.
  int report(const std::optional<milliseconds>& within) {
    if (arguments_.json) {
      print_line(to_json(BrokenLock{arguments_.name, token_, arguments_.of_semaphore,
                                    arguments_.now, within, true}));
      return status(Exit::ok);
    }
    auto text = fmt::format("{}: {} the holder with token {}", arguments_.name,
                            arguments_.of_semaphore ? "permits taken from" : "taken from", token_);
    if (arguments_.now && within) {
      text += fmt::format("; the old holder may still work for {}", rounded(*within));
    } else if (arguments_.now) {
      text += "; the old holder may still work until it notices";
    }
    print_line(text);
    return status(Exit::ok);
  }

  /// On standard error first: the mark stays also where standard output cannot be written.
  void report_mark(std::string_view why) {
    const bool has_bound = result_.within.has_value();
    const auto within = has_bound ? left() : std::nullopt;
    complain(fmt::format(
        "{}: {}; the mark stays: its holder cannot renew it, and it is free when "
        "the holder has released it{}",
        arguments_.name, why, has_bound ? at_most() : "; run dlock break again to wait for that"));
    if (!arguments_.json) return;
    print_line(to_json(
        BrokenLock{arguments_.name, token_, arguments_.of_semaphore, false, within, false}));
  }

  LockManager& locks_;
  const Arguments& arguments_;
  const std::uint64_t token_;
  EvictOptions options_;
  std::stop_source stop_;
  Wake ended_;
  std::mutex mutex_;
  // Under the mutex.
  bool marked_ = false;
  std::optional<TimePoint> latest_;  ///< when the marked record is free
  bool has_ended_ = false;
  Evicted result_;
  std::exception_ptr failure_;
};

}  // namespace

int break_and_wait(LockManager& locks, const Arguments& arguments, std::uint64_t token,
                   Signals& signals) {
  return Breaking(locks, arguments, token).run(signals);
}

int break_lock(const Arguments& arguments) {
  // Before there are other threads.
  Signals signals({SIGHUP, SIGINT, SIGTERM});
  LockManager locks = open_manager(arguments);
  if (arguments.ask) return ask_for_lock(locks, arguments, signals);
  const auto token = arguments.of_semaphore ? token_of(locks, arguments) : arguments.token;
  return break_and_wait(locks, arguments, token, signals);
}

}  // namespace dlock::cli
