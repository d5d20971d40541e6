// SPDX-License-Identifier: Apache-2.0
//
// The claims of this process on one lock, by ticket. Only the first of them checks the file, and
// readers with only readers before them. The others are behind these. So a process with 10,000
// waiters makes no more system calls at a hand-over than one with a single waiter.
//
// The file of a lock without claims in this process stays open for the next claim.
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
  /// Returns whether other claims may have something to check now.
  bool leave(std::uint64_t ticket) noexcept;
  /// The claim has become a reader.
  void share(std::uint64_t ticket) noexcept;
  bool empty() const noexcept { return places_.empty(); }
  /// Returns null without a claim.
  std::shared_ptr<LocalClaim> first() const noexcept;
  /// Returns whether no claim of this process is before it that it has to wait for.
  bool is_looker(std::uint64_t ticket) const noexcept;
  /// Notifies those of them that wait.
  void notify_lookers() const noexcept;
  /// Returns the ticket of the next claim that waits for it, and that all further ones wait for.
  /// Above all tickets if there is none. `mode`: the ticket's mode.
  std::uint64_t next_behind(std::uint64_t ticket, Mode mode) const noexcept;
  std::vector<std::shared_ptr<LocalClaim>> everybody() const;
  /// Returns any claim; null without a claim.
  std::shared_ptr<LocalClaim> anybody() const noexcept;

  int watch = -1;  ///< watch of the file, while the first one waits; -1: none
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
  /// Called without a claim in it: forgets its watch and returns it, to be ended. Also forgets the
  /// line, unless a file is kept in it.
  int retire(LocalQueue& queue) noexcept;

  /// Keeps a file without locks, unless one is kept already. At the limit all kept files are
  /// closed.
  void keep(LocalQueue& queue, LockFile file) noexcept;
  /// Returns the kept file, or an empty one.
  LockFile take_kept(LocalQueue& queue) noexcept;
  /// Returns false if no file was kept.
  bool close_kept() noexcept;

  std::vector<std::shared_ptr<LocalQueue>> all() const;
  std::shared_ptr<LocalClaim> anybody() const noexcept;

 private:
  std::unordered_map<std::string, std::shared_ptr<LocalQueue>> by_file_;
  std::unordered_map<int, std::weak_ptr<LocalQueue>> by_watch_;
  std::size_t kept_ = 0;
};

}  // namespace dlock::local
