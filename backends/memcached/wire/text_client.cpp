// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/text_client.hpp"

#include <utility>

#include "backends/memcached/error.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"

namespace dlock::memcached {
namespace {

using std::chrono::milliseconds;

// Moves the result of an exchange.

void take(LineExchange& from, Answer& result) { result = std::move(from.answer); }

void take(NumberExchange& from, Number& result) {
  result.answer = std::move(from.answer);
  result.value = from.value;
}

void take(TimeExchange& from, Number& result) {
  result.answer = std::move(from.answer);
  result.value = from.value;
}

void take(ItemsExchange& from, Found& result) {
  result.answer = std::move(from.answer);
  result.items = std::move(from.items);
}

struct Stats {
  Answer answer;
  ServerInfo info;
  bool has_meta = false;
};
void take(StatsExchange& from, Stats& result) {
  result = {std::move(from.answer), std::move(from.info), from.has_meta};
}

}  // namespace

TextClient::TextClient(Env& env, Endpoint server, std::uint32_t flags, bool meta)
    : env_(env), server_(std::move(server)), flags_(flags), may_use_meta_(meta) {}

TextClient::~TextClient() {
  or_end([this] { close(); });
}

asio::awaitable<Answer> TextClient::open_now(TimePoint deadline) {
  drop();
  is_meta_ = false;
  if (is_closed_) co_return Answer{Outcome::unavailable, failure(Error::closed), {}};
  connection_ = std::make_shared<Connection>(env_);
  const auto connection = connection_;
  auto why = co_await connection->connect(server_, deadline);
  if (!why.error) co_return Answer{Outcome::done, {}, {}};
  co_return Answer{Outcome::unavailable, std::move(why), {}};
}

void TextClient::drop() {
  if (const auto connection = std::exchange(connection_, nullptr)) {
    connection->close(failure(Error::connection_lost));
  }
}

void TextClient::close() {
  is_closed_ = true;
  if (connection_) connection_->close(failure(Error::closed));
}

Failure TextClient::why_not(TimePoint deadline) const {
  if (is_closed_) return failure(Error::closed);
  if (!is_open()) return connection_ ? connection_->failure() : failure(Error::connection_lost);
  if (deadline - env_.now() < milliseconds(1)) return failure(Error::no_answer, "no time was left");
  return {};
}

template <class Kind, class Write, class... Arguments>
TextClient::OnItsWay<Kind> TextClient::begin(TimePoint deadline, Write write,
                                             Arguments&&... arguments) {
  const Asked asked{is_meta_, ++last_tag_, era()};
  OnItsWay<Kind> sent;
  sent.exchange = detail::make_recycled<Kind>(env_, asked, std::forward<Arguments>(arguments)...);
  auto why = why_not(deadline);
  if (why.error) {
    sent.exchange->end({Outcome::unavailable, std::move(why), {}});
    return sent;
  }
  sent.connection = connection_;
  write(asked, sent.connection->out());
  sent.connection->send(sent.exchange);
  return sent;
}

template <class Result, class Kind>
asio::awaitable<Result> TextClient::result(OnItsWay<Kind> sent, TimePoint deadline) {
  const auto exchange = std::move(sent.exchange);
  const auto connection = std::move(sent.connection);
  bool in_time = true;
  while (in_time && !exchange->is_over()) in_time = co_await exchange->told(deadline);
  if (!exchange->is_over()) connection->give_up(*exchange);
  Result result;
  take(*exchange, result);
  co_return result;
}

asio::awaitable<Answer> TextClient::add(const std::string& key, const std::string& value,
                                        std::time_t exptime, TimePoint deadline) {
  const auto write = [&](const Asked& asked, std::string& out) {
    const Stored what{key, value, flags_, exptime};
    if (asked.is_meta) {
      put_meta_add(what, asked.tag, out);
    } else {
      put_add(what, out);
    }
  };
  return result<Answer>(begin<LineExchange>(deadline, write), deadline);
}

asio::awaitable<Answer> TextClient::cas(const std::string& key, const std::string& value,
                                        std::time_t exptime, std::uint64_t cas,
                                        TimePoint deadline) {
  const auto write = [&](const Asked& asked, std::string& out) {
    const Stored what{key, value, flags_, exptime};
    if (asked.is_meta) {
      put_meta_cas(what, cas, asked.tag, out);
    } else {
      put_cas(what, cas, out);
    }
  };
  return result<Answer>(begin<LineExchange>(deadline, write), deadline);
}

asio::awaitable<Answer> TextClient::remove(const std::string& key, std::uint64_t cas,
                                           TimePoint deadline) {
  if (!is_meta_) {
    return [](Answer answer) -> asio::awaitable<Answer> {
      co_return answer;
    }({Outcome::exists, {}, {}});
  }
  const auto write = [&](const Asked& asked, std::string& out) {
    put_meta_delete(key, cas, asked.tag, out);
  };
  return result<Answer>(begin<LineExchange>(deadline, write), deadline);
}

asio::awaitable<Number> TextClient::increment(const std::string& key, std::uint64_t by,
                                              TimePoint deadline) {
  const auto write = [&](const Asked& asked, std::string& out) {
    if (asked.is_meta) {
      put_meta_incr(key, by, asked.tag, out);
    } else {
      put_incr(key, by, out);
    }
  };
  return result<Number>(begin<NumberExchange>(deadline, write), deadline);
}

asio::awaitable<Number> TextClient::seconds_left(const std::string& key, TimePoint deadline) {
  if (!is_meta_) return Client::seconds_left(key, deadline);
  const auto write = [&](const Asked& asked, std::string& out) {
    put_meta_time(key, asked.tag, out);
  };
  return result<Number>(begin<TimeExchange>(deadline, write), deadline);
}

asio::awaitable<Found> TextClient::gets(const std::vector<std::string>& keys, TimePoint deadline) {
  const auto write = [&](const Asked&, std::string& out) { put_gets(keys, out); };
  return result<Found>(begin<ItemsExchange>(deadline, write, keys), deadline);
}

asio::awaitable<Answer> TextClient::stats(ServerInfo& into, TimePoint deadline) {
  const auto write = [](const Asked&, std::string& out) { out += "stats\r\n"; };
  auto said = co_await result<Stats>(begin<StatsExchange>(deadline, write, into, false), deadline);
  if (said.answer.done()) into = std::move(said.info);
  co_return std::move(said.answer);
}

asio::awaitable<Answer> TextClient::settings(ServerInfo& into, TimePoint deadline) {
  const bool probes = may_use_meta_ && has_meta_commands(into.version);
  const auto write = [probes](const Asked&, std::string& out) {
    out += probes ? "stats settings\r\nmn\r\n" : "stats settings\r\n";
  };
  auto said = co_await result<Stats>(begin<StatsExchange>(deadline, write, into, probes), deadline);
  if (said.answer.done()) {
    into = std::move(said.info);
    is_meta_ = said.has_meta;
  }
  co_return std::move(said.answer);
}

const MakeClient& text_driver() {
  static const MakeClient make = [](Env& env, Endpoint server, std::uint32_t flags) {
    return std::make_unique<TextClient>(env, std::move(server), flags, true);
  };
  return make;
}

}  // namespace dlock::memcached
