// SPDX-License-Identifier: Apache-2.0
//
// The text protocol to one server, over a connection of its own.
//
//  - After an answer that did not come in time, or that does not fit, the connection is closed:
//  what
//    came late would be taken for the answer to the next request. Meta commands carry a tag
//    besides, which the answer must name.
//  - It knows one server only. It never ejects, fails over or re-hashes: that makes second owners.
//  - A fork()ed child closes its copy of the socket; no lock hangs on a connection.
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

  void drop() noexcept override;
  void close() noexcept override;
  bool is_open() const noexcept override { return connection_ && connection_->is_open(); }
  bool has_told_closed() const noexcept override { return told_closed_; }

  asio::awaitable<Answer> add(const std::string& key, const std::string& value,
                              std::time_t exptime) override;
  asio::awaitable<Answer> cas(const std::string& key, const std::string& value, std::time_t exptime,
                              std::uint64_t cas) override;
  asio::awaitable<Answer> remove(const std::string& key, std::uint64_t cas) override;
  asio::awaitable<Number> increment(const std::string& key, std::uint64_t by) override;
  asio::awaitable<Found> gets(const std::vector<std::string>& keys) override;
  asio::awaitable<Answer> stats(ServerInfo& into) override;
  asio::awaitable<Answer> settings(ServerInfo& into) override;

 private:
  void open_now() override;
  /// Where the next request is to be written; null: none can be sent.
  std::string* out() noexcept;
  Answer not_sent();
  asio::awaitable<Answer> connect();
  asio::awaitable<Answer> ask();
  asio::awaitable<Number> ask_number();
  asio::awaitable<Found> ask_items(const std::vector<std::string>& keys);
  asio::awaitable<Answer> ask_stats(ServerInfo& into, bool probes);
  Answer judge(std::string_view line) const;
  Answer judge_meta(std::string_view line) const;
  Answer finish(Answer answer);
  Answer broken();

  Env& env_;
  const Endpoint server_;
  const std::uint32_t flags_;
  const bool may_use_meta_;
  bool is_meta_ = false;
  bool is_connected_ = false;
  bool is_closed_ = false;
  bool told_closed_ = false;
  std::uint64_t last_tag_ = 0;
  std::shared_ptr<Connection> connection_;
};

}  // namespace dlock::memcached
