// SPDX-License-Identifier: Apache-2.0
//
// The text protocol to one server, over its own connection.
//
//  - Answers are matched by their order, and those to meta commands also by a tag. After an answer
//    that does not match the connection is closed.
//  - It uses one server only. It never ejects, fails over or re-hashes: that would allow two
//    holders.
//  - A fork()ed child closes its copy of the socket; no lock depends on a connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/memcached/wire/client.hpp"
#include "backends/memcached/wire/connection.hpp"

namespace dlock::memcached {

class TextClient final : public Client {
 public:
  /// `meta`: whether meta commands may be used where they are known.
  TextClient(Env& env, Endpoint server, std::uint32_t flags, bool meta);
  ~TextClient() override;

  void drop() override;
  void close() override;
  bool is_open() const noexcept override { return connection_ && connection_->is_open(); }
  void gather() noexcept override {
    if (connection_) connection_->gather();
  }

  asio::awaitable<Answer> add(const std::string& key, const std::string& value, std::time_t exptime,
                              TimePoint deadline) override;
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas, TimePoint deadline) override;
  asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas,
                                 TimePoint deadline) override;
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by,
                                    TimePoint deadline) override;
  asio::awaitable<Number> seconds_left(const std::string& key, TimePoint deadline) override;
  asio::awaitable<Found> gets(const std::vector<std::string>& keys, TimePoint deadline) override;
  asio::awaitable<Answer> stats(ServerInfo& into, TimePoint deadline) override;
  asio::awaitable<Answer> settings(ServerInfo& into, TimePoint deadline) override;

 private:
  template <class Kind>
  struct OnItsWay {
    std::shared_ptr<Connection> connection;  ///< null: it was not sent
    std::shared_ptr<Kind> exchange;
  };
  /// `write(asked, out)` writes the request.
  template <class Kind, class Write, class... Arguments>
  OnItsWay<Kind> begin(TimePoint deadline, Write write, Arguments&&... arguments);
  template <class Result, class Kind>
  static asio::awaitable<Result> result(OnItsWay<Kind> sent, TimePoint deadline);
  Failure why_not(TimePoint deadline) const;
  asio::awaitable<Answer> open_now(TimePoint deadline) override;

  Env& env_;
  const Endpoint server_;
  const std::uint32_t flags_;
  const bool may_use_meta_;
  bool is_meta_ = false;
  bool is_closed_ = false;
  std::uint64_t last_tag_ = 0;
  std::shared_ptr<Connection> connection_;
};

}  // namespace dlock::memcached
