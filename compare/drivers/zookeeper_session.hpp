// SPDX-License-Identifier: Apache-2.0
//
// The ZooKeeper C client as it comes, driven by poll(): for the floor and for the naive locks that
// the suite shows. It keeps no promise about anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

struct _zhandle;

namespace dlock::compare {

/// One session. One thread at a time.
class ZooKeeperSession {
 public:
  using Clock = std::chrono::steady_clock;

  struct Created {
    std::string path;
    std::int64_t czxid = 0;
  };

  /// Connects; throws std::runtime_error when that takes longer than `patience`.
  explicit ZooKeeperSession(const std::string& hosts,
                            std::chrono::milliseconds timeout = std::chrono::minutes(1),
                            std::chrono::milliseconds patience = std::chrono::seconds(15));
  ~ZooKeeperSession();
  ZooKeeperSession(const ZooKeeperSession&) = delete;
  ZooKeeperSession& operator=(const ZooKeeperSession&) = delete;

  /// Persistent; one that is there already is fine. Parents must be there.
  void make(const std::string& path);
  Created create_sequential(const std::string& prefix);
  /// false: it is there already.
  bool create_ephemeral(const std::string& path);
  /// Both requests at once, one round trip.
  struct Place {
    Created own;
    std::vector<std::string> children;
  };
  Place join_line(const std::string& parent, const std::string& prefix);
  /// false: there is no such node.
  bool exists(const std::string& path);
  void remove(const std::string& path);
  /// false: there is no such node now, and so no watch. `gone` is called once, while driven.
  bool watch(const std::string& path, std::function<void()> gone);
  /// Sends a write that changes nothing, and waits for its answer.
  void prove(const std::string& path);

  /// Moves the session on until `done`; throws std::runtime_error at the deadline.
  void drive_until(const std::function<bool()>& done,
                   Clock::time_point deadline = Clock::now() + std::chrono::seconds(60));
  /// The same for many sessions on one thread.
  static void drive_all(const std::vector<ZooKeeperSession*>& sessions,
                        const std::function<bool()>& done, Clock::time_point deadline);

 private:
  struct Interest {
    int descriptor = -1;
    short events = 0;
    int timeout_ms = 0;
  };
  Interest interest();
  void process(short events);

  _zhandle* handle_ = nullptr;
};

}  // namespace dlock::compare
