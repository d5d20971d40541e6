// SPDX-License-Identifier: Apache-2.0
//
// What Session asks of one connection to one server: single commands, each bounded by a deadline,
// each blocking its thread. LibraryClient is the real one; the simulation has its own. With it the
// queue of the thread on which it blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {

class Client {
 public:
  virtual ~Client() = default;

  void until(TimePoint deadline) { deadline_ = deadline; }
  TimePoint deadline() const { return deadline_; }

  /// The first command connects.
  virtual void open() = 0;
  virtual void drop() = 0;
  virtual bool is_open() const noexcept = 0;

  virtual Answer add(const std::string& key, const std::string& value, std::time_t exptime) = 0;
  virtual Answer cas(const std::string& key, const std::string& value, std::time_t exptime,
                     std::uint64_t cas) = 0;
  virtual Number increment(const std::string& key, std::uint64_t by) = 0;
  virtual Found gets(const std::vector<std::string>& keys) = 0;
  /// `what`: null for the general ones, or `settings`.
  virtual Answer stats(const char* what, ServerInfo& into) = 0;

 private:
  TimePoint deadline_{};
};

/// The jobs of one worker's thread.
class JobQueue {
 public:
  virtual ~JobQueue() = default;
  /// Any thread. After close(): dropped by the queue's end.
  virtual void post(Job job) = 0;
  /// Carries out jobs, in order, on the calling thread; returns after close(), when none is left.
  virtual void run() = 0;
  /// Any thread.
  virtual void close() = 0;
};

/// How a backend blocks: on libmemcached in a thread, or on a simulated server.
struct Driver {
  std::function<std::unique_ptr<Client>(Env& env, Endpoint server, std::uint32_t flags)>
      make_client;
  std::function<std::unique_ptr<JobQueue>()> make_queue;
};

/// libmemcached; a queue for a thread of its own.
const Driver& library_driver();

}  // namespace dlock::memcached
