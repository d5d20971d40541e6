// SPDX-License-Identifier: Apache-2.0
//
// A holder with work to do, for the safety scenarios: it takes the lock when told, looks whether it
// still has it, works a while, writes to the guarded resource, and says all that it knows with the
// time at which it knew it.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "compare/drivers/guarded.hpp"

namespace dlock::compare {

namespace {

/// Sends writes to the suite's resource, which decides what it accepts.
class Resource {
 public:
  explicit Resource(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("path too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot reach the guarded resource");
    }
  }
  ~Resource() { ::close(socket_); }
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  void write(std::int64_t grant, std::optional<std::uint64_t> token) {
    const auto text = fmt::format("{} {}", grant, token.value_or(0));
    ::send(socket_, text.data(), text.size(), 0);
  }

 private:
  int socket_;
};

bool command_waits(std::chrono::milliseconds at_most) {
  pollfd polled{STDIN_FILENO, POLLIN, 0};
  return ::poll(&polled, 1, static_cast<int>(at_most.count())) > 0;
}

class Guard {
 public:
  explicit Guard(const Job& job)
      : resource_(job.text("resource")),
        plant_(job.text("plant")),
        work_(job.milliseconds("work_ms", 20)),
        grant_(job.number("first_grant", 1) - 1),
        lock_(job.text("driver") == "naive" ? make_naive_guarded(job)
                                            : make_dlock_guarded(job, [this] { tell_loss(); })) {}

  void run() {
    say({{"event", "ready"}});
    std::string command;
    while (read_command(command)) {
      if (command == "acquire" && !hold()) return;
      if (command == "release") late_release();
      if (command == "release_by_another_thread") foreign_release();
    }
  }

 private:
  /// false: the suite is gone.
  bool hold() {
    event("wanted");
    // Planted: a waiter that loses its place in the line.
    if (plant_ == "dawdle") std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    lock_->acquire();
    ++grant_;
    told_ = false;
    token_ = lock_->token();
    // Planted: a token that is too high, so that the next one falls.
    if (plant_ == "high_token" && token_) *token_ += 1'000'000'000;
    until_ = deadline();
    boost::json::object granted = at("granted");
    if (token_) granted["token"] = *token_;
    if (until_) granted["until"] = *until_;
    looked_ = now_ns();
    granted["at"] = looked_;
    say(granted);
    resource_.write(grant_, token_);
    return work();
  }

  bool work() {
    while (true) {
      if (!deaf() && !lock_->lost().empty()) {
        tell_loss();
        return true;
      }
      // Planted: a busy machine, on which it comes to look late. That breaks no promise.
      if (plant_ == "doze") std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      const auto looks = now_ns();
      if (const auto until = deadline(); until && until_ && *until > *until_) {
        until_ = until;
        boost::json::object extended = at("extended");
        // It was extended since the last look; on a busy machine that may be long ago.
        extended["at"] = looked_;
        extended["until"] = *until;
        say(extended);
      }
      looked_ = looks;
      // The work between looking and writing: a pause that falls into it ends in a late write.
      if (command_waits(work_)) {
        std::string command;
        if (!read_command(command)) return false;
        if (command == "release") {
          release();
          return true;
        }
        if (command == "release_by_another_thread") foreign_release();
      }
      resource_.write(grant_, token_);
    }
  }

  void release() {
    if (!begin_release()) return late_release();
    boost::json::object released = at("released");
    // Planted: a release that never reaches the store.
    released["error"] = plant_ == "keep" ? "" : lock_->release();
    say(released);
  }

  /// A loss that comes while the release is under way is told by what the release answers; before
  /// it, by tell_loss() alone. Never by both.
  bool begin_release() {
    const std::lock_guard lock(telling_);
    if (told_.exchange(true)) return deaf();
    event("releasing");
    return true;
  }

  /// Of a lock that was told lost: what a program does that did not look.
  void late_release() {
    boost::json::object released = at("late_release");
    released["error"] = lock_->release();
    say(released);
  }

  void foreign_release() {
    std::string answer;
    std::thread([&] { answer = lock_->release_by_another_thread(); }).join();
    boost::json::object event = at("foreign_release");
    event["refused"] = answer;
    say(event);
  }

  void tell_loss() {
    const std::lock_guard lock(telling_);
    if (deaf() || told_.exchange(true)) return;
    boost::json::object told = at("told_lost");
    if (lock_) told["reason"] = lock_->lost();
    say(told);
    if (plant_ == "twice") say(told);  // planted: a holder that is told twice
  }

  // Planted: a holder that hears nothing and believes for ever.
  bool deaf() const { return plant_ == "deaf"; }
  Until deadline() { return deaf() ? Until() : lock_->until(); }

  boost::json::object at(const char* what) const {
    return {{"event", what}, {"at", now_ns()}, {"grant", grant_.load()}};
  }
  void event(const char* what) const { say(at(what)); }

  Resource resource_;
  std::string plant_;
  std::chrono::milliseconds work_;
  std::atomic<std::int64_t> grant_;
  std::mutex telling_;            ///< of what is said about the end of a grant
  std::atomic<bool> told_{true};  // until the first grant there is nothing to lose
  std::optional<std::uint64_t> token_;
  Until until_;
  std::int64_t looked_ = 0;  ///< when `until_` was read
  std::unique_ptr<Guarded> lock_;
};

}  // namespace

void run_guard(const Job& job) { Guard(job).run(); }

}  // namespace dlock::compare
