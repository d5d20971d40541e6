// SPDX-License-Identifier: Apache-2.0
//
// How the library is driven: sockets, timers, the session's state, its end.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cstring>

#include "backends/zookeeper/wire/library_client.hpp"
#include "backends/zookeeper/wire/library_client_request.hpp"

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

/// The pause between two steps without a connection.
constexpr milliseconds kShortestPause{10};
/// Replies per step, so that a flood of them does not keep the loop from its timers.
constexpr int kRepliesPerStep = 64;

void ignore_session_event(zhandle_t*, int, int, const char*, void*) {}

/// Its log would go to our user's standard error, through a buffer that threads share.
void silence_library() {
  static const bool once = [] {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    return true;
  }();
  static_cast<void>(once);
}

/// The library has given its connection up, if it had one.
bool failed(int rc) { return rc != ZOK && rc != ZNOTHING && rc != ZINVALIDSTATE; }

/// If an answer ends before the count of its children, the library uses stack memory as the count.
/// Half of a pointer would be a count of gigabytes. So this function clears that memory.
[[gnu::noinline]] void clear_stack() noexcept {
  std::array<char, 2048> below;  // NOLINT: written below
  ::explicit_bzero(below.data(), below.size());
}

/// The library tries one address at a time. One that does not answer the connection costs this
/// much.
constexpr milliseconds kNextAddress{250};

std::ptrdiff_t count_of(const std::string& addresses) {
  return std::count(addresses.begin(), addresses.end(), ',') + 1;
}

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

LibraryClient::LibraryClient(Env& env, Options options, Listener& listener)
    : env_(env),
      options_(std::move(options)),
      servers_(count_of(options_.addresses)),
      listener_(&listener),
      redial_(options_.session_timeout, static_cast<std::size_t>(servers_), env.now(),
              options_.least_pause, options_.tries_spent) {}

LibraryClient::~LibraryClient() {
  if (handle_ != nullptr) close([] {});
}

bool LibraryClient::start() {
  silence_library();
  handle_ = zookeeper_init(options_.addresses.c_str(), &ignore_session_event,
                           static_cast<int>(options_.session_timeout.count()), nullptr, nullptr,
                           ZOO_NO_LOG_CLIENTENV);
  if (handle_ == nullptr) return false;
  // Else every step resolves the (numeric) addresses again.
  zoo_set_servers_resolution_delay(handle_, -1);
  if (!options_.digest.empty()) authenticate(options_.digest);
  post_step();
  return true;
}

// The library sends all digests of a session again on each connection.
void LibraryClient::authenticate(const std::string& digest) {
  if (handle_ == nullptr || state_ == State::over) return;
  zoo_add_auth(handle_, "digest", digest.data(), static_cast<int>(digest.size()), nullptr, nullptr);
  post_step();
}

// The library closes the session only over an open connection.
void LibraryClient::abandon() {
  if (handle_ == nullptr) return;
  cut_off();
  while (zoo_state(handle_) == ZOO_CONNECTED_STATE) {
    clear_stack();
    if (failed(zookeeper_process(handle_, ZOOKEEPER_READ))) break;
  }
}

void LibraryClient::close(Job done) {
  state_ = State::closed;
  env_.cancel(std::exchange(timer_, 0));
  drop_descriptor();
  for (auto* request : pending_) {
    request->client = nullptr;
    Reply closing;
    closing.rc = ZCLOSING;
    request->result.set(std::move(closing));
  }
  pending_.clear();
  auto* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) {
    asio::post(env_.executor(), [done = std::move(done)]() mutable { done(); });
    return;
  }
  env_.run_blocking([handle] { zookeeper_close(handle); }, std::move(done));
}

std::int64_t LibraryClient::session_id() const noexcept {
  return handle_ == nullptr ? 0 : zoo_client_id(handle_)->client_id;
}

milliseconds LibraryClient::session_timeout() const noexcept {
  return milliseconds(handle_ == nullptr ? 0 : zoo_recv_timeout(handle_));
}

// Not zoo_get_current_server: its answer is in a buffer that all threads share.
std::string LibraryClient::server() const {
  asio::ip::tcp::endpoint peer;
  auto length = static_cast<socklen_t>(peer.capacity());
  if (!connected() || zookeeper_get_connected_host(handle_, peer.data(), &length) == nullptr) {
    return {};
  }
  return fmt::format("{}:{}", peer.address().to_string(), peer.port());
}

void LibraryClient::set_addresses(const std::string& addresses) {
  if (handle_ == nullptr || addresses == options_.addresses) return;
  options_.addresses = addresses;
  servers_ = count_of(addresses);
  list_is_new_ = true;
  attempts_ = 0;
  redial_.servers(static_cast<std::size_t>(servers_));
  zoo_set_servers(handle_, addresses.c_str());
  post_step();
}

// The library itself waits two thirds of the session, in which every lock is lost. A request that
// is not answered for a fifth of the session is repeated on another connection.
TimePoint LibraryClient::patience_ends() const noexcept {
  const auto others = servers_ - 1;
  if (!socket_) return kNever;
  if (state_ == State::connecting) {
    if (others == 0) return kNever;
    // Longer each time round, or servers that are only slow would never be reached.
    Duration first = std::max<Duration>(options_.session_timeout / (4 * others), milliseconds(50));
    if (zoo_state(handle_) == ZOO_CONNECTING_STATE) first = std::min<Duration>(first, kNextAddress);
    const auto rounds = std::min<std::ptrdiff_t>(attempts_ / (others + 1), 10);
    return opened_ + std::min<Duration>(first * (1 << rounds), options_.session_timeout * 2 / 3);
  }
  if (pending_.empty()) return kNever;
  // Longer each time, or a server behind a slow link would answer on no connection.
  const auto first = options_.session_timeout / 5;
  return waiting_ + std::min<Duration>(first * (1 << std::min(unanswered_, 2)),
                                       options_.session_timeout * 2 / 3);
}

void LibraryClient::post_step() {
  if (std::exchange(step_posted_, true)) return;
  env_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->step_posted_ = false;
    self->step(0);
  });
}

/// As if the server had hung up.
void LibraryClient::cut_off() noexcept {
  if (socket_) ::shutdown(socket_->native_handle(), SHUT_RDWR);
}

void LibraryClient::step(int events) {
  if (handle_ == nullptr || state_ == State::over) return;
  const bool was_connected = zoo_state(handle_) == ZOO_CONNECTED_STATE;
  // Both only for a ready socket: without one the library says "invalid state" and does nothing.
  for (int i = 0; events != 0 && i < kRepliesPerStep; ++i) {
    const auto before = zoo_state(handle_);
    const bool introduced = before == ZOO_ASSOCIATING_STATE;
    // Also for a connection that was made just now. The library sends its introduction in two
    // writes. If a server has closed the connection, the second write fails as if the server had
    // refused.
    const bool dialling = before == ZOO_CONNECTING_STATE;
    if (dialling || (introduced && (events & ZOOKEEPER_READ) != 0)) note_peer();
    const bool awaited = !pending_.empty();
    if ((events & ZOOKEEPER_READ) != 0) clear_stack();
    const int rc = zookeeper_process(handle_, events);
    note(rc);
    if (failed(rc) && introduced) turned_away_ = true;
    if (rc != ZOK || (events & ZOOKEEPER_READ) == 0) break;
    // As a rule nothing follows the last answer; what does is reported when we wait again.
    if (awaited && pending_.empty()) break;
    events = ZOOKEEPER_READ;
  }
  // Handles this as if the server had closed the connection: the library uses the next one. While
  // connected only after a check of the socket: after a pause of the process the answers may
  // already be there.
  if ((events != 0 || !connected()) && env_.now() >= patience_ends()) {
    if (!connected()) {
      tried_.left();
    } else {
      ++unanswered_;
    }
    cut_off();
  }
  int descriptor = -1;
  int interest = 0;
  timeval timeout{};
  if (may_dial()) {
    const auto before = env_.now();
    const bool dials = !dialled_;
    const int rc = zookeeper_interest(handle_, &descriptor, &interest, &timeout);
    dialled_ = rc == ZOK && descriptor >= 0;
    if (dials && (dialled_ || rc != ZOK)) redial_.tried(before);
    note(rc);
    // On an error its descriptor number is that of a socket it has closed.
    if (rc != ZOK) descriptor = -1;
    // It has another socket only after it was without a connection for more than one step.
    const bool same = was_connected && zoo_state(handle_) == ZOO_CONNECTED_STATE && socket_ &&
                      descriptor == descriptor_;
    if (!same && open_descriptor(descriptor, before) < 0) interest = 0;
  } else {
    drop_descriptor();
  }
  if (zoo_state(handle_) == ZOO_ASSOCIATING_STATE) note_peer();
  arm(interest, std::chrono::seconds(timeout.tv_sec) + std::chrono::microseconds(timeout.tv_usec));
  tell_listener();
}

/// Given its turn without a socket, the library dials.
bool LibraryClient::may_dial() { return dialled_ || env_.now() >= redial_.next(); }

void LibraryClient::note(int rc) {
  if (!failed(rc)) return;
  dialled_ = false;
  if (state_ == State::connecting) {
    tried_.failed(rc == ZOPERATIONTIMEOUT);
    listener_->on_attempt_failed();
  }
  if (state_ == State::connected) redial_.missing(env_.now());
  skip_no_server();
}

/// Records the peer of the introduction, and whether its first bytes are an answer to that. The
/// answer's length is 36, or 37 with the mark of a read-only server.
void LibraryClient::note_peer() {
  if (!socket_) return;
  asio::ip::tcp::endpoint peer;
  auto length = static_cast<socklen_t>(peer.capacity());
  if (::getpeername(socket_->native_handle(), peer.data(), &length) == 0) {
    tried_.reached(fmt::format("{}:{}", peer.address().to_string(), peer.port()));
  }
  std::array<unsigned char, 4> head{};
  const auto got =
      ::recv(socket_->native_handle(), head.data(), head.size(), MSG_PEEK | MSG_DONTWAIT);
  for (ssize_t i = 0; i < got; ++i) {
    const auto byte = head.at(static_cast<std::size_t>(i));
    if (i < 3 ? byte != 0 : byte != 36 && byte != 37) tried_.answered_wrongly();
  }
}

/// After a failure the library advances in its list twice: when it closes the connection, and when
/// it connects. Cycling through all servers but one undoes the first step. Not for a new list: the
/// library counts its first round, and the connection from it, separately.
void LibraryClient::skip_no_server() {
  const bool first_round = is_first_round();
  list_is_new_ = first_round && state_ != State::connected;
  for (auto i = servers_; i > 1 && !first_round; --i) zoo_cycle_next_server(handle_);
}

bool LibraryClient::is_first_round() const noexcept {
  return list_is_new_ && attempts_ <= servers_;
}

/// Makes the duplicate follow the library's socket. The library's own number, or -1.
int LibraryClient::open_descriptor(int descriptor, TimePoint before) {
  const auto inode = descriptor < 0 ? 0 : inode_of(descriptor);
  if (socket_ && inode == inode_) return descriptor;
  drop_descriptor();
  if (descriptor < 0) return -1;
  // The library leaves its socket open across exec.
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const int duplicate = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return -1;  // out of descriptors: the timer checks until there is one
  socket_.emplace(env_.executor(), duplicate);
  descriptor_ = descriptor;
  inode_ = inode;
  opened_ = before;
  ++attempts_;
  return descriptor;
}

// Closes it at once: while the duplicate is open, the server does not see the end of the
// connection.
void LibraryClient::drop_descriptor() noexcept {
  if (!socket_) return;
  boost::system::error_code ignored;
  socket_->close(ignored);
  socket_.reset();
  writable_.reset();
  ++socket_number_;
  reading_ = false;
  writing_ = false;
}

void LibraryClient::wait_for_socket(int interest) {
  using Socket = asio::posix::stream_descriptor;
  if ((interest & ZOOKEEPER_READ) != 0 && !reading_) {
    wait(*socket_, Socket::wait_read, ZOOKEEPER_READ, &LibraryClient::reading_);
  }
  if ((interest & ZOOKEEPER_WRITE) == 0 || writing_) return;
  // A descriptor that was waited for once to be writable is reported as that with every later wait,
  // which costs each answer another turn of the loop: so it is one that is closed afterwards.
  const int duplicate = ::fcntl(socket_->native_handle(), F_DUPFD_CLOEXEC, 0);
  if (duplicate >= 0) writable_.emplace(env_.executor(), duplicate);
  wait(writable_ ? *writable_ : *socket_, Socket::wait_write, ZOOKEEPER_WRITE,
       &LibraryClient::writing_);
}

void LibraryClient::wait(asio::posix::stream_descriptor& descriptor,
                         asio::posix::stream_descriptor::wait_type type, int event,
                         bool LibraryClient::*flag) {
  descriptor.async_wait(type, [weak = weak_from_this(), number = socket_number_, event,
                               flag](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (!self || self->socket_number_ != number) return;
    (*self).*flag = false;
    if (event == ZOOKEEPER_WRITE) self->writable_.reset();
    if (!ec) self->step(event);
  });
  this->*flag = true;
}

// A timer that fires too early only asks the library again, so a set timer is not changed.
void LibraryClient::arm(int interest, Duration timeout) {
  if (zoo_state(handle_) == ZOO_EXPIRED_SESSION_STATE) return;
  if (interest != 0) wait_for_socket(interest);
  const bool calm = zoo_state(handle_) == ZOO_CONNECTED_STATE && interest != 0;
  const auto pause = std::max<Duration>(timeout, calm ? milliseconds(1) : kShortestPause);
  // While connecting its answer may be a third of the session: our own pace is quicker.
  const auto now = env_.now();
  auto due = now + (interest == 0 ? std::min<Duration>(pause, 10 * kShortestPause) : pause);
  if (!dialled_) due = std::max(due, redial_.next());
  due = std::clamp(patience_ends(), now + kShortestPause, std::max(due, now + kShortestPause));
  if (timer_ != 0 && timer_due_ <= due) return;
  timer_due_ = due;
  env_.cancel(timer_);
  timer_ = env_.call_at(due, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    // After a pause of the process the library would call a connection silent that is not.
    self->step(self->connected() ? ZOOKEEPER_READ : 0);
  });
}

void LibraryClient::tell_listener() {
  const auto keep = shared_from_this();
  while (!watch_events_.empty() && state_ != State::closed) {
    const auto [path, event] = std::move(watch_events_.front());
    watch_events_.pop_front();
    listener_->on_watch(path, event);
  }
  if (state_ == State::closed) return;
  const int now = zoo_state(handle_);
  if (now == ZOO_EXPIRED_SESSION_STATE || now == ZOO_AUTH_FAILED_STATE) {
    state_ = State::over;
    drop_descriptor();
    env_.cancel(std::exchange(timer_, 0));
    listener_->on_session_over(now == ZOO_AUTH_FAILED_STATE);
  } else if (now == ZOO_CONNECTED_STATE && state_ == State::connecting) {
    if (created_ == TimePoint{}) created_ = opened_;
    state_ = State::connected;
    tried_.clear();
    turned_away_ = false;
    list_is_new_ = is_first_round();
    attempts_ = 0;
    listener_->on_connected();
  } else if (now != ZOO_CONNECTED_STATE && state_ == State::connected) {
    state_ = State::connecting;
    listener_->on_disconnected();
  }
}

void LibraryClient::cork(bool on) noexcept {
  if (!socket_) return;
  const int value = on ? 1 : 0;
  ::setsockopt(socket_->native_handle(), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

}  // namespace dlock::zookeeper
