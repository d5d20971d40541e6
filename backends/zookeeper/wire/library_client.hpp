// SPDX-License-Identifier: Apache-2.0
//
// The Client over libzookeeper_st, driven by the loop.
//
// Problems of the library that only this class handles:
//  - it opens and closes its own descriptor and often gets the same number back, so Asio watches a
//    duplicate, compared by inode after each step;
//  - it requests a step after some time (zookeeper_interest), which becomes an Env timer;
//  - it tries a server that refuses it some ten times a second: it may connect only when redial.hpp
//    allows it;
//  - after a reconnect it sends all watches in one packet, which a server refuses beyond its
//    jute.maxbuffer: callers forget them while disconnected, and set them again;
//  - with an even number of servers it would try only every other one;
//  - closing a session may block for seconds: a helper thread does it, after all requests are
//    complete;
//  - its socket stays open across exec by default (a fork()ed child never calls it: the core keeps
//    all of the parent's objects there untouched);
//  - it keeps a request without a connection and sends it later, when no caller waits for it:
//    callers submit only while connected().
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "backends/zookeeper/wire/client.hpp"
#include "backends/zookeeper/wire/library.hpp"
#include "backends/zookeeper/wire/redial.hpp"
#include "backends/zookeeper/wire/tried.hpp"

namespace dlock::zookeeper {

class LibraryClient final : public Client, public std::enable_shared_from_this<LibraryClient> {
 public:
  LibraryClient(Env& env, Options options, Listener& listener);
  ~LibraryClient() override;
  LibraryClient(const LibraryClient&) = delete;
  LibraryClient& operator=(const LibraryClient&) = delete;

  bool start() override;
  void close(Job done) override;
  void abandon() override;
  bool connected() const noexcept override { return state_ == State::connected; }
  std::int64_t session_id() const noexcept override;
  std::chrono::milliseconds session_timeout() const noexcept override;
  TimePoint created() const noexcept override { return created_; }
  std::string server() const override;
  bool turned_away() const noexcept override { return turned_away_; }
  std::string tried() const override { return tried_.text(options_.addresses, dialled_); }
  void set_addresses(const std::string& addresses) override;
  void authenticate(const std::string& digest) override;
  PendingReply create(const std::string& path, std::string_view data, Mode mode) override;
  PendingReply remove(const std::string& path) override;
  PendingReply set(const std::string& path, std::string_view data) override;
  PendingReply set_version(const std::string& path, std::string_view data,
                           std::int32_t version) override;
  PendingReply remove_version(const std::string& path, std::int32_t version) override;
  PendingReply exists(const std::string& path) override;
  PendingReply get(const std::string& path) override;
  PendingReply get_and_watch(const std::string& path) override;
  PendingReply exists_and_watch(const std::string& path) override;
  PendingReply children(const std::string& path) override;
  PendingReply children_and_watch(const std::string& path) override;
  PendingReply sync(const std::string& path) override;
  PendingReply prove(const std::string& path) override;
  PendingReply mark_and_remove(const std::string& path, std::string_view data) override;
  PendingReply mark_and_replace(const std::string& path, std::string_view data,
                                const std::string& heir, std::string_view text, Mode mode) override;
  PendingReply change_if(const Check& check, const Change& change) override;
  void forget_watch(const std::string& path) override;
  void forget_children(const std::string& path) override;

 private:
  enum class State { connecting, connected, over, closed };
  struct Request;
  struct Callbacks;

  Request* begin(bool write, const std::string* watched = nullptr);
  PendingReply submitted(Request* request, int rc);
  void finish(Request& request, Reply reply, bool committed);

  void step(int events);
  void cut_off() noexcept;
  bool may_dial();
  void note(int rc);
  void note_peer();
  void skip_no_server();
  bool is_first_round() const noexcept;
  void post_step();
  int open_descriptor(int descriptor, TimePoint before);
  void drop_descriptor() noexcept;
  void wait_for_socket(int interest);
  void wait(asio::posix::stream_descriptor& descriptor,
            asio::posix::stream_descriptor::wait_type type, int event, bool LibraryClient::*flag);
  void arm(int interest, Duration timeout);
  void tell_listener();
  void forget_watch_here(const std::string& path);
  void cork(bool on) noexcept override;
  TimePoint patience_ends() const noexcept;

  Env& env_;
  Options options_;
  std::ptrdiff_t servers_;  ///< how many there are
  Listener* listener_;
  zhandle_t* handle_ = nullptr;
  State state_ = State::connecting;
  std::deque<Request*> pending_;  ///< in the order of sending, in which they are answered
  std::deque<std::pair<std::string, WatchEvent>> watch_events_;

  std::optional<asio::posix::stream_descriptor> socket_;    ///< a duplicate of the library's
  std::optional<asio::posix::stream_descriptor> writable_;  ///< another, to wait until it is that
  int descriptor_ = -1;                                     ///< the library's number of it
  std::uint64_t inode_ = 0;
  std::uint64_t socket_number_ = 0;  ///< counts sockets, so that a late handler knows its own
  bool reading_ = false;
  bool writing_ = false;
  bool step_posted_ = false;
  TimerId timer_ = 0;
  TimePoint timer_due_ = kNever;
  Redial redial_;
  Tried tried_;
  bool dialled_ = false;      ///< the library has a socket, or may have
  bool turned_away_ = false;  ///< as turned_away()
  int attempts_ = 0;          ///< sockets opened since we were last connected, or got a new list
  bool list_is_new_ = true;   ///< nothing was lost since the library got its list of servers
  TimePoint opened_{};        ///< before the present socket was opened
  TimePoint waiting_{};       ///< since when the oldest pending request is the server's turn
  TimePoint created_{};
  int unanswered_ = 0;  ///< connections that were replaced, one after the other, for their silence
};

/// The real one: sessions over libzookeeper_st, four-letter words over TCP.
Library& c_library() noexcept;

}  // namespace dlock::zookeeper
