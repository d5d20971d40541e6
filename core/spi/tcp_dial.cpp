// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/net/tcp_dial.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <utility>

#include "dlock/spi/error.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::inline v0 {

using boost::system::error_code;

asio::awaitable<TcpDial::Result> TcpDial::run(dlock::Endpoint server, TimePoint deadline) {
  const auto self = shared_from_this();
  Result result;
  std::vector<Endpoint> addresses;
  error_code is_a_name;
  const auto address = asio::ip::make_address(server.host, is_a_name);
  if (!is_a_name) {
    addresses.emplace_back(address, server.port);
  } else {
    Job told = [weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->event_.notify();
    };
    const auto lookup = HostLookup::start(env_, server, std::move(told));
    bool in_time = true;
    while (in_time && !lookup->has_ended() && !stopped_) {
      in_time = co_await event_.wait_until(deadline);
    }
    if (!lookup->has_begun()) {
      result.failed = Step::no_thread;
      result.error = "no thread can be made that could ask, see RLIMIT_NPROC and pids.max";
      co_return result;
    }
    result.error = lookup->has_ended() ? lookup->error() : "no answer from the name server in time";
    if (!result.error.empty()) {
      result.failed = Step::resolving;
      co_return result;
    }
    addresses = lookup->endpoints();
  }
  co_return co_await connect(addresses, deadline);
}

asio::awaitable<TcpDial::Result> TcpDial::run(std::vector<Endpoint> addresses, TimePoint deadline) {
  const auto self = shared_from_this();
  co_return co_await connect(addresses, deadline);
}

asio::awaitable<TcpDial::Result> TcpDial::connect(const std::vector<Endpoint>& addresses,
                                                  TimePoint deadline) {
  // Whatever ends this coroutine ends its attempts.
  const struct Ending {
    TcpDial& dial;
    ~Ending() { dial.end(); }
  } ending{*this};
  auto next = addresses.begin();
  next_due_ = env_.now();
  // A short deadline is shared among all addresses.
  const auto share = (deadline - env_.now()) / (static_cast<int>(addresses.size()) + 1);
  const auto pause = std::min<std::chrono::nanoseconds>(kNextAddress, share);
  bool in_time = true;
  while (in_time && !winner_ && !stopped_) {
    if (next != addresses.end() && env_.now() >= next_due_) {
      next_due_ = env_.now() + pause;
      begin(*next++);
      continue;
    }
    if (next == addresses.end() && !any_runs()) break;
    const auto until = next == addresses.end() ? deadline : std::min(deadline, next_due_);
    in_time = co_await event_.wait_until(until);
    in_time = in_time || env_.now() < deadline;
  }
  Result result;
  if (const auto winner = std::exchange(winner_, nullptr)) {
    error_code ignored;
    winner->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    winner->socket.set_option(asio::socket_base::keep_alive(true), ignored);
    winner->descriptor = -1;
    result.socket.emplace(std::move(winner->socket));
    co_return result;
  }
  result.failed = Step::connecting;
  result.error = why_not();
  co_return result;
}

void TcpDial::begin(Endpoint address) {
  const auto attempt = std::make_shared<Attempt>(env_, address);
  attempts_.push_back(attempt);
  if (auto error = open(*attempt); !error.empty()) return fail(*attempt, std::move(error));
  attempt->socket.async_connect(address, [self = shared_from_this(), attempt](error_code ec) {
    if (attempt->is_over) return;
    attempt->is_over = true;
    if (ec) {
      self->fail(*attempt, ec.message());
    } else if (!self->winner_) {
      self->winner_ = attempt;
    }
    self->event_.notify();
  });
}

/// The next address is tried at once.
void TcpDial::fail(Attempt& attempt, std::string error) noexcept {
  attempt.is_over = true;
  attempt.error = std::move(error);
  next_due_ = env_.now();
  shut(attempt);
}

/// Opens a socket that no child process keeps. Asio's own are inherited by a program that a child
/// runs, and a child that was only fork()ed would keep the connection open.
std::string TcpDial::open(Attempt& attempt) const {
  const auto protocol = attempt.address.protocol();
  const int descriptor =
      ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
  if (descriptor < 0) return system_text(errno);
  error_code ec;
  attempt.socket.assign(protocol, descriptor, ec);
  if (ec) {
    ::close(descriptor);
    return system_text(ec.value());
  }
  attempt.socket.non_blocking(true, ec);
  if (ec) {
    error_code ignored;
    attempt.socket.close(ignored);
    return ec.message();
  }
  close_in_fork_child(descriptor);
  attempt.descriptor = descriptor;
  return {};
}

void TcpDial::shut(Attempt& attempt) noexcept {
  if (attempt.descriptor >= 0) keep_in_fork_child(std::exchange(attempt.descriptor, -1));
  error_code ignored;
  attempt.socket.close(ignored);
}

void TcpDial::end() noexcept {
  for (const auto& attempt : attempts_) {
    attempt->is_over = true;
    shut(*attempt);
  }
  attempts_.clear();
  winner_ = nullptr;
}

void TcpDial::stop() noexcept {
  stopped_ = true;
  event_.notify();
}

bool TcpDial::any_runs() const noexcept {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& attempt) { return !attempt->is_over; });
}

/// Returns one reason if all addresses failed alike, else the reason for each.
std::string TcpDial::why_not() const {
  const auto reason = [](const Attempt& attempt) -> std::string {
    return attempt.error.empty() ? "no answer in time" : attempt.error;
  };
  if (attempts_.empty()) return "no answer in time";
  const auto first = reason(*attempts_.front());
  const bool alike = std::all_of(attempts_.begin(), attempts_.end(),
                                 [&](const auto& attempt) { return reason(*attempt) == first; });
  if (alike) return first;
  std::string all;
  for (const auto& attempt : attempts_) {
    if (!all.empty()) all += ", ";
    all += attempt->address.address().to_string() + ": " + reason(*attempt);
  }
  return all;
}

}  // namespace dlock::inline v0
