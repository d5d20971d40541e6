// SPDX-License-Identifier: Apache-2.0
//
// TcpDial: from a server's name to a TCP connection. Each address of the name is tried: the next
// one 250 ms after the one before, or as soon as that has failed. The first that answers is the
// result.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dlock/spi/env.hpp"
#include "dlock/spi/net/host_lookup.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::inline v0 {

/// One attempt. Loop only. Keep it by shared_ptr.
class TcpDial final : public std::enable_shared_from_this<TcpDial> {
 public:
  using Socket = asio::ip::tcp::socket;
  using Endpoint = asio::ip::tcp::endpoint;

  /// How long after one address the next is tried, if the deadline leaves so much for each.
  static constexpr std::chrono::milliseconds kNextAddress{250};

  explicit TcpDial(Env& env) : env_(env), event_(env) {}
  ~TcpDial() { end(); }
  TcpDial(const TcpDial&) = delete;
  TcpDial& operator=(const TcpDial&) = delete;

  enum class Step {
    none,        ///< it is connected
    no_thread,   ///< no thread could look up the name
    resolving,   ///< the name server's answer, or none
    connecting,  ///< each address
  };
  struct Result {
    Step failed = Step::none;
    std::string error;  ///< empty on success
    /// Not blocking, with no_delay and keep_alive; no child process inherits it, and a fork()ed
    /// child closes it: keep_in_fork_child() before it is closed.
    std::optional<Socket> socket;
  };

  /// Resolves the name and connects. Once.
  asio::awaitable<Result> run(dlock::Endpoint server, TimePoint deadline);
  /// Connects to the first of `addresses` that answers. Once.
  asio::awaitable<Result> run(std::vector<Endpoint> addresses, TimePoint deadline);
  /// Ends run() soon, with a failure.
  void stop() noexcept;

 private:
  struct Attempt {
    explicit Attempt(Env& env, Endpoint to) : address(to), socket(env.executor()) {}
    Endpoint address;
    Socket socket;
    int descriptor = -1;
    bool is_over = false;
    std::string error;
  };

  asio::awaitable<Result> connect(const std::vector<Endpoint>& addresses, TimePoint deadline);
  void begin(Endpoint address);
  std::string open(Attempt& attempt) const;
  void fail(Attempt& attempt, std::string error) noexcept;
  void shut(Attempt& attempt) noexcept;
  void end() noexcept;
  std::string why_not() const;
  bool any_runs() const noexcept;

  Env& env_;
  Signal event_;
  std::list<std::shared_ptr<Attempt>> attempts_;
  std::shared_ptr<Attempt> winner_;
  TimePoint next_due_{};  ///< when the next address is tried
  bool stopped_ = false;
};

}  // namespace dlock::inline v0
