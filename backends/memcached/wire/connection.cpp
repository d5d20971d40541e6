// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/connection.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "backends/memcached/error.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::memcached {

using boost::system::error_code;

namespace {

/// Of a server's line, in an error.
constexpr std::size_t kLongestWords = 200;
/// A server that says something, but owes so many answers for which nobody waits any more, is
/// asked anew on another connection: it is too far behind, or will never come to an end.
constexpr std::ptrdiff_t kMostOverdue = 64;

/// Without its words if there is no memory for them.
Failure copy_of(const Failure& failure) noexcept {
  Failure copy;
  copy.error = failure.error;
  try {
    copy.text = failure.text;
  } catch (const std::bad_alloc&) {
    copy.text.clear();
  }
  return copy;
}

std::string with_limit(int error_number) {
  auto text = std::generic_category().message(error_number);
  if (error_number == EMFILE) text += ": no descriptor is left, see RLIMIT_NOFILE (ulimit -n)";
  if (error_number == ENFILE) text += ": no descriptor is left in the system, see fs.file-max";
  return text;
}

std::string words_of(const error_code& ec) {
  return ec == asio::error::eof ? "disconnected by the server" : ec.message();
}

}  // namespace

/// What a helper thread finds out. It may do so when nobody waits any more.
struct Connection::Lookup {
  std::atomic<bool> begun = false;
  bool done = false;  ///< the loop's
  std::vector<Tcp::endpoint> endpoints;
  std::string error;

  void run(const Endpoint& server) {
    begun = true;
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* all = nullptr;
    const int failed = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &all);
    if (failed != 0) {
      error = failed == EAI_SYSTEM ? with_limit(errno) : ::gai_strerror(failed);
      return;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(all, &::freeaddrinfo);
    for (const auto* one = all; one != nullptr; one = one->ai_next) {
      Tcp::endpoint endpoint;
      if (one->ai_addrlen > endpoint.capacity()) continue;
      std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
      endpoint.resize(one->ai_addrlen);
      endpoint.port(server.port);
      endpoints.push_back(endpoint);
    }
  }
};

Connection::Connection(Env& env) : env_(env), socket_(env.executor()), event_(env) {}

Connection::~Connection() { shut(); }

asio::awaitable<Failure> Connection::connect(Endpoint server, TimePoint deadline) {
  const auto self = shared_from_this();
  const auto found = co_await look_up(server, deadline);
  if (!open_) co_return failure_;
  Failure why;
  if (!found->done) {
    why = found->begun
              ? memcached::failure(Error::unknown_host, server.host + ": no answer in time")
              : memcached::failure(Error::no_thread,
                                   "no thread can be made that could ask for the address "
                                   "(RLIMIT_NPROC or pids.max?)");
  } else if (!found->error.empty()) {
    why = memcached::failure(Error::unknown_host, server.host + ": " + found->error);
  } else {
    std::string text = "the name has no address";
    auto left = static_cast<Duration::rep>(found->endpoints.size());
    for (const auto& endpoint : found->endpoints) {
      const auto now = env_.now();
      text = co_await connect_to(endpoint, now + (deadline - now) / left);
      --left;
      if (!open_) co_return failure_;
      if (text.empty()) break;
    }
    if (text.empty()) {
      read();
      co_return Failure{};
    }
    why = memcached::failure(Error::not_connected, std::move(text));
  }
  close(why);
  co_return why;
}

// Not Asio's resolver: it keeps a thread of its own, which takes the application's signals, and
// says by an exception that there is none to be had.
asio::awaitable<std::shared_ptr<Connection::Lookup>> Connection::look_up(Endpoint server,
                                                                         TimePoint deadline) {
  const auto found = std::make_shared<Lookup>();
  error_code is_a_name;
  const auto address = asio::ip::make_address(server.host, is_a_name);
  if (!is_a_name) {
    found->endpoints.emplace_back(address, server.port);
    found->done = true;
    co_return found;
  }
  Job job = [found, server] {
    try {
      found->run(server);
    } catch (const std::exception& error) {
      found->error = error.what();
    }
  };
  Job told = [found, weak = weak_from_this()] {
    found->done = true;
    if (const auto self = weak.lock()) self->event_.notify();
  };
  env_.run_blocking(std::move(job), std::move(told));
  bool in_time = true;
  while (in_time && !found->done && open_) in_time = co_await event_.wait_until(deadline);
  co_return found;
}

/// Empty on success, else why not.
asio::awaitable<std::string> Connection::connect_to(Tcp::endpoint endpoint, TimePoint deadline) {
  auto text = open_socket(endpoint.protocol());
  if (!text.empty()) co_return text;
  connected_.reset();
  socket_.async_connect(endpoint, [self = shared_from_this()](error_code ec) {
    // One that was given up, because its time was over.
    if (ec == asio::error::operation_aborted) return;
    self->connected_ = ec;
    self->event_.notify();
  });
  bool in_time = true;
  while (in_time && !connected_ && open_) in_time = co_await event_.wait_until(deadline);
  if (connected_ && !*connected_) {
    error_code ignored;
    socket_.set_option(Tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    co_return text;
  }
  text = connected_ ? words_of(*connected_) : "no answer in time";
  shut();
  co_return text;
}

/// One that no child keeps: not one that runs another program (Asio's own are inherited by those),
/// nor one that was only fork()ed.
std::string Connection::open_socket(const Tcp& protocol) {
  const int descriptor =
      ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (descriptor < 0) return with_limit(errno);
  error_code ec;
  socket_.assign(protocol, descriptor, ec);
  if (ec) {
    ::close(descriptor);
    return with_limit(ec.value());
  }
  socket_.non_blocking(true, ec);
  if (!ec) {
    close_in_fork_child(descriptor);
    descriptor_ = descriptor;
    return {};
  }
  error_code ignored;
  socket_.close(ignored);
  return ec.message();
}

void Connection::shut() noexcept {
  if (descriptor_ >= 0) keep_in_fork_child(std::exchange(descriptor_, -1));
  error_code ignored;
  socket_.close(ignored);
}

// Nothing from here on takes memory but the words of the failure: everybody is told.
void Connection::close(Failure why) noexcept {
  if (!std::exchange(open_, false)) return;
  failure_ = std::move(why);
  shut();
  // A server that is full has carried out nothing.
  const bool is_full = failure_.error == make_error_code(Error::no_places);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    auto& exchange = *pending_[i];
    if (exchange.is_over()) continue;
    const bool maybe_done = i + unwritten_ < pending_.size() && !is_full;
    Answer answer;
    answer.outcome = maybe_done ? Outcome::unknown : Outcome::unavailable;
    answer.failure = copy_of(failure_);
    exchange.end(std::move(answer));
  }
  pending_.clear();
  event_.notify();
}

template <class Step>
void Connection::guarded(Step step) noexcept {
  try {
    step();
  } catch (const std::exception& error) {
    close(failure_of(error));
  }
}

void Connection::send(std::shared_ptr<Exchange> exchange) {
  const auto now = env_.now();
  exchange->since = now;
  pending_.push_back(std::move(exchange));
  ++unwritten_;
  write_asked();
}

void Connection::write_asked() {
  const bool at_once = pace_.asked(pending_.size(), unwritten_);
  if (writes_ == Writing::now) return;
  if (at_once) return flush();
  if (writes_ == Writing::soon) return;
  env_.post([self = shared_from_this()] {
    if (self->writes_ == Writing::soon && self->open_) self->guarded([&] { self->flush(); });
  });
  writes_ = Writing::soon;
}

void Connection::flush() {
  writes_ = Writing::no;
  if (out_.empty()) return;
  writing_.clear();
  std::swap(writing_, out_);
  unwritten_ = 0;
  written_ = 0;
  write_rest();
}

void Connection::write_rest() {
  error_code ec;
  const auto left = asio::buffer(writing_.data() + written_, writing_.size() - written_);
  written_ += socket_.write_some(left, ec);
  if (ec == asio::error::would_block || ec == asio::error::try_again) ec = {};
  if (ec) return close(memcached::failure(Error::connection_lost, ec.message()));
  if (written_ == writing_.size()) return;
  socket_.async_wait(Tcp::socket::wait_write, [self = shared_from_this()](error_code) {
    self->writes_ = Writing::no;
    if (!self->open_) return;
    self->guarded([&] {
      self->write_rest();
      if (self->writes_ == Writing::no) self->flush();
    });
  });
  writes_ = Writing::now;
}

void Connection::read() noexcept {
  guarded([this] {
    const auto room = reader_.room();
    socket_.async_read_some(
        asio::buffer(room.data(), room.size()),
        [self = shared_from_this()](error_code ec, std::size_t size) { self->on_read(ec, size); });
  });
}

void Connection::on_read(error_code ec, std::size_t size) {
  if (!open_) return;
  guarded([&] {
    if (ec) return close(memcached::failure(Error::connection_lost, words_of(ec)));
    reader_.received(size);
    last_heard_ = env_.now();
    take_answers();
  });
  if (open_) read();
}

void Connection::take_answers() {
  while (!pending_.empty() && open_) {
    // It may be of nobody else by then.
    const auto first = pending_.front();
    const auto piece = reader_.next(first->expects_data());
    if (!piece) break;
    // Answered before it was asked.
    if (pending_.size() <= unwritten_) return end_for_unasked();
    const auto progress = first->take(*piece);
    if (progress == Exchange::Progress::more) continue;
    pending_.pop_front();
    if (progress == Exchange::Progress::lost) {
      return close(memcached::failure(Error::connection_lost,
                                      "an answer to another request did not fit: " +
                                          std::string(piece->line.substr(0, kLongestWords))));
    }
  }
  if (!open_) return;
  if (!reader_.error().empty()) {
    return close(memcached::failure(Error::unexpected, reader_.error()));
  }
  if (pending_.empty() && !reader_.is_empty()) end_for_unasked();
}

/// Said before it was asked: full, as a rule.
void Connection::end_for_unasked() {
  const auto piece = reader_.next(false);
  std::string text = piece ? std::string(piece->line.substr(0, kLongestWords)) : std::string();
  const bool is_full = text.find("open connections") != text.npos;
  if (text.empty()) text = "bytes that nobody has asked for";
  close(memcached::failure(is_full ? Error::no_places : Error::unexpected, std::move(text)));
}

void Connection::give_up(Exchange& exchange) noexcept {
  if (exchange.is_over()) return;
  Answer answer;
  answer.outcome = Outcome::unknown;
  answer.failure.error = make_error_code(Error::no_answer);
  exchange.end(std::move(answer));
  const auto is_overdue = [](const auto& asked) { return asked->is_over(); };
  const auto overdue = std::count_if(pending_.begin(), pending_.end(), is_overdue);
  if (last_heard_ > exchange.since && overdue < kMostOverdue) return;
  Failure why;
  why.error = make_error_code(Error::connection_lost);
  close(std::move(why));
}

}  // namespace dlock::memcached
