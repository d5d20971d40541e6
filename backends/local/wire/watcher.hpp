// SPDX-License-Identifier: Apache-2.0
//
// Notifies when a lock file was closed by a process that could have held the lock (a release, a
// crash, a failed try), and when one was removed or replaced. One inotify descriptor for all locks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/spi/env.hpp"

namespace dlock::local {

class Watcher {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_file_closed(int watch) = 0;
    /// Called for a file with watch_held_file().
    virtual void on_file_written(int /*watch*/) {}
    /// Removed, moved away, or something was moved onto it.
    virtual void on_name_changed(std::string_view file) = 0;
    virtual void on_directory_gone() = 0;
    /// Something on the way to the directory was moved or removed: the path may lead elsewhere.
    virtual void on_way_changed() = 0;
    /// The kernel dropped events: check everything.
    virtual void on_events_lost() = 0;
  };

  /// `listener` must outlive it or stop() must have been called.
  Watcher(Env& env, Listener& listener) : env_(env), listener_(listener) {}
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Watches an open directory instead of the one before. If possible, also watches whether each
  /// directory and symlink of `way` is moved or removed. Returns an errno, 0 if it worked.
  int start(int directory, const std::vector<std::string>& way);
  void stop() noexcept;
  bool running() const noexcept { return state_ != nullptr; }

  /// The watch's number, -1 if there can be none (more).
  int watch_file(const std::string& path) noexcept;
  /// As watch_file(), for a holder: also reports writes, which every new claim makes.
  int watch_held_file(const std::string& path) noexcept;
  /// Watches the file in addition to existing watches of it.
  int watch_file_too(const std::string& path) noexcept;
  void unwatch(int watch) noexcept;
  /// From now on also reports new files in the directory (on_name_changed()).
  void watch_new_files() noexcept;

 private:
  struct State;
  static void await(std::shared_ptr<State> state);
  static void read(State& state);

  Env& env_;
  Listener& listener_;
  std::shared_ptr<State> state_;
};

}  // namespace dlock::local
