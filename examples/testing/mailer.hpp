// SPDX-License-Identifier: Apache-2.0
//
// A service as many are: it does its work under a lock, and is given the lock, so that its test can
// give it another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlock/distributed_lock.hpp"

/// Where the letters go. Refuses a token below one that it has seen.
class Post {
 public:
  virtual ~Post() = default;
  virtual void send(const std::string& letter, std::uint64_t token) = 0;
};

/// Sends letters, one program of many at a time.
class Mailer {
 public:
  enum class Outcome { sent, not_our_turn, lock_lost, failed };
  struct Report {
    Outcome outcome = Outcome::failed;
    std::size_t sent = 0;
    std::string problem = {};  ///< of `failed`
  };

  Mailer(std::shared_ptr<dlock::DistributedLock> lock, Post& post)
      : lock_(std::move(lock)), post_(post) {}

  /// Waits 100 ms for the lock, 1 s for a store that does not answer. Stops when the lock is lost.
  Report send(const std::vector<std::string>& letters);

 private:
  const std::shared_ptr<dlock::DistributedLock> lock_;
  Post& post_;
};
