// SPDX-License-Identifier: Apache-2.0
//
// Those of this process who hold or wait for one lock, by ticket. Only the first of them has
// anything to look at, and readers that have nobody but readers before them: the others stand
// behind these. So a process with 10,000 waiters makes no more system calls at a hand-over than one
// with a single waiter.
//
// Of a lock that nobody here holds or waits for the file stays open, for the next who does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/local/wire/lock_file.hpp"
#include "dlock/mode.hpp"

namespace dlock::local {

class LocalClaim;

class LocalQueue {
 public:
  explicit LocalQueue(std::string file) : file_(std::move(file)) {}

  const std::string& file() const noexcept { return file_; }
  void join(std::uint64_t ticket, const std::shared_ptr<LocalClaim>& claim);
  /// True if others may have something to look at now.
  bool leave(std::uint64_t ticket) noexcept;
  /// It has become one of mode shared.
  void share(std::uint64_t ticket) noexcept;
  bool empty() const noexcept { return places_.empty(); }
  /// Null if nobody is there.
  std::shared_ptr<LocalClaim> first() const noexcept;
  /// Nobody of this process is before it whom it would wait for.
  bool is_looker(std::uint64_t ticket) const noexcept;
  /// Those of them who wait.
  void notify_lookers() const noexcept;
  /// The ticket of the next one who waits for it and whom all further ones wait for; above all
  /// tickets if there is none. `mode`: of the ticket.
  std::uint64_t next_behind(std::uint64_t ticket, Mode mode) const noexcept;
  std::vector<std::shared_ptr<LocalClaim>> everybody() const;
  /// Any one of them; null if nobody is there.
  std::shared_ptr<LocalClaim> anybody() const noexcept;

  int watch = -1;  ///< of the file, while the first one waits; -1 none
  LockFile kept;   ///< nothing in it is locked

 private:
  struct Place {
    std::weak_ptr<LocalClaim> claim;
    bool shared = false;
  };
  using Places = std::map<std::uint64_t, Place>;

  std::string file_;
  Places places_;
  std::size_t readers_ = 0;  ///< places of mode shared
};

/// The lines of one directory, by file and by watch.
class LocalQueues {
 public:
  std::shared_ptr<LocalQueue> of(const std::string& file);
  std::shared_ptr<LocalQueue> find(const std::string& file) const;
  std::shared_ptr<LocalQueue> watched(int watch) const;
  void set_watch(const std::shared_ptr<LocalQueue>& queue, int watch);
  /// Nobody is in it: forgets its watch, which it returns, to be ended; and the line, unless a file
  /// is kept in it.
  int retire(LocalQueue& queue) noexcept;

  /// Keeps a file in which nothing is locked, unless there is one. One too many: all are closed.
  void keep(LocalQueue& queue, LockFile file) noexcept;
  /// The file that is kept; none if there is none.
  LockFile take_kept(LocalQueue& queue) noexcept;
  /// False if there was none.
  bool close_kept() noexcept;

  std::vector<std::shared_ptr<LocalQueue>> all() const;
  std::shared_ptr<LocalClaim> anybody() const noexcept;

 private:
  std::unordered_map<std::string, std::shared_ptr<LocalQueue>> by_file_;
  std::unordered_map<int, std::weak_ptr<LocalQueue>> by_watch_;
  std::size_t kept_ = 0;
};

}  // namespace dlock::local
