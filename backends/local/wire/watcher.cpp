// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/watcher.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

#include "backends/local/wire/descriptor.hpp"

namespace dlock::local {

struct Watcher::State {
  State(Env& env, int descriptor, Listener& to)
      : stream(env.executor(), descriptor), listener(&to) {}
  asio::posix::stream_descriptor stream;
  Listener* listener;  ///< null once stopped
  int directory_watch = -1;
  std::string directory;  ///< as it is open
};

// Watches the directory by its descriptor, and the way to it by path, because the path may lead
// elsewhere later.
int Watcher::start(int directory, const std::vector<std::string>& way) {
  stop();
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return errno;
  Descriptor owned(descriptor);
  auto state = std::make_shared<State>(env_, descriptor, listener_);
  owned.release();
  const auto opened = "/proc/self/fd/" + std::to_string(directory);
  state->directory = opened;
  state->directory_watch = ::inotify_add_watch(
      descriptor, opened.c_str(),
      IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  if (state->directory_watch < 0) return errno;
  // Changes inside them are not reported. IN_MASK_ADD: the directory itself is among them.
  for (const auto& each : way) {
    static_cast<void>(::inotify_add_watch(
        descriptor, each.c_str(),
        IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT | IN_DONT_FOLLOW | IN_MASK_ADD));
  }
  await(state);
  state_ = std::move(state);
  return 0;
}

void Watcher::stop() noexcept {
  if (!state_) return;
  state_->listener = nullptr;
  boost::system::error_code ignored;
  state_->stream.close(ignored);
  state_.reset();
}

// Watches only closes: other claims write their tickets all the time, which never makes a waiter
// the next one.
int Watcher::watch_file(const std::string& path) noexcept {
  if (!state_) return -1;
  return ::inotify_add_watch(state_->stream.native_handle(), path.c_str(),
                             IN_CLOSE_WRITE | IN_DONT_FOLLOW);
}

int Watcher::watch_held_file(const std::string& path) noexcept {
  if (!state_) return -1;
  return ::inotify_add_watch(state_->stream.native_handle(), path.c_str(),
                             IN_CLOSE_WRITE | IN_MODIFY | IN_DONT_FOLLOW);
}

int Watcher::watch_file_too(const std::string& path) noexcept {
  if (!state_) return -1;
  return ::inotify_add_watch(state_->stream.native_handle(), path.c_str(),
                             IN_CLOSE_WRITE | IN_DONT_FOLLOW | IN_MASK_ADD);
}

void Watcher::watch_new_files() noexcept {
  if (!state_) return;
  ::inotify_add_watch(state_->stream.native_handle(), state_->directory.c_str(),
                      IN_CREATE | IN_ONLYDIR | IN_MASK_ADD);
}

void Watcher::unwatch(int watch) noexcept {
  if (state_ && watch >= 0) ::inotify_rm_watch(state_->stream.native_handle(), watch);
}

void Watcher::await(std::shared_ptr<State> state) {
  auto& stream = state->stream;
  stream.async_wait(asio::posix::stream_descriptor::wait_read,
                    [state = std::move(state)](const boost::system::error_code& ec) mutable {
                      if (ec || state->listener == nullptr) return;
                      read(*state);
                      if (state->listener != nullptr) await(std::move(state));
                    });
}

void Watcher::read(State& state) {
  alignas(inotify_event) std::array<char, std::size_t{16} * 1024> buffer;
  while (state.listener != nullptr) {
    const auto size = ::read(state.stream.native_handle(), buffer.data(), buffer.size());
    if (size <= 0) return;
    std::size_t at = 0;
    while (at < static_cast<std::size_t>(size) && state.listener != nullptr) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const text = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        state.listener->on_events_lost();
      } else if (event.wd != state.directory_watch) {
        if ((event.mask & IN_CLOSE_WRITE) != 0) state.listener->on_file_closed(event.wd);
        if ((event.mask & IN_MODIFY) != 0) state.listener->on_file_written(event.wd);
        if ((event.mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) != 0) {
          state.listener->on_way_changed();
        }
      } else if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) {
        state.listener->on_directory_gone();
      } else {
        state.listener->on_name_changed({text, ::strnlen(text, event.len)});
      }
    }
    // A partly filled buffer had all events: saves a read that finds nothing.
    if (static_cast<std::size_t>(size) + sizeof(inotify_event) + 256 < buffer.size()) return;
  }
}

}  // namespace dlock::local
