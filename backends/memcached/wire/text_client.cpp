// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/text_client.hpp"

#include <algorithm>
#include <utility>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

using std::chrono::milliseconds;

/// Lines of one answer to `stats`.
constexpr int kMostStats = 10'000;
constexpr std::size_t kLongestQuote = 200;

Answer unexpected(std::string_view line) {
  return {
      Outcome::unknown, failure(Error::unexpected, std::string(line.substr(0, kLongestQuote))), {}};
}

/// What a server says when it does not do as it was asked.
Answer judge_error(std::string_view line) {
  std::string text(line.substr(0, kLongestQuote));
  const auto has = [&](std::string_view words) { return line.find(words) != line.npos; };
  if (line.starts_with("SERVER_ERROR")) {
    if (has("out of memory")) {
      return {Outcome::refused, failure(Error::out_of_memory, std::move(text)), {}};
    }
    // A proxy's, as a rule, that has lost its server in the midst of it: maybe done.
    return {Outcome::unknown, failure(Error::server_error, std::move(text)), {}};
  }
  if (line.starts_with("CLIENT_ERROR")) {
    const auto error = has("unauthenticated") ? Error::access_denied : Error::refused;
    return {Outcome::refused, failure(error, std::move(text)), {}};
  }
  if (line.starts_with("ERROR")) {
    // It is said on accepting, and the connection closed.
    if (has("open connections")) {
      return {Outcome::unavailable, failure(Error::no_places, std::move(text)), {}};
    }
    return {Outcome::refused, failure(Error::refused, std::move(text)), {}};
  }
  return unexpected(line);
}

/// Whether the next answer can be the next request's: not where the server may have taken data for
/// commands, or has said what we do not understand.
bool keeps_step(const Answer& answer) {
  if (answer.outcome == Outcome::refused)
    return answer.failure.error != make_error_code(Error::refused);
  if (answer.outcome == Outcome::unknown)
    return answer.failure.error == make_error_code(Error::server_error);
  return answer.outcome != Outcome::unavailable;
}

asio::awaitable<Answer> as_awaitable(Answer answer) { co_return answer; }

}  // namespace

TextClient::TextClient(Env& env, Endpoint server, std::uint32_t flags, bool meta)
    : env_(env), server_(std::move(server)), flags_(flags), may_use_meta_(meta) {}

TextClient::~TextClient() { close(); }

void TextClient::open_now() {
  drop();
  is_meta_ = false;
  is_connected_ = false;
  if (!is_closed_) connection_ = std::make_shared<Connection>(env_);
}

void TextClient::drop() noexcept {
  if (const auto connection = std::exchange(connection_, nullptr)) connection->close({});
}

void TextClient::close() noexcept {
  is_closed_ = true;
  if (connection_) connection_->close(failure(Error::closed));
}

std::string* TextClient::out() noexcept {
  const bool in_time = deadline() - env_.now() >= milliseconds(1);
  if (!in_time || is_closed_ || !is_open()) return nullptr;
  ++last_tag_;
  return &connection_->out();
}

Answer TextClient::not_sent() {
  told_closed_ = is_closed_;
  if (is_closed_) return {Outcome::unavailable, failure(Error::closed), {}};
  if (!is_open()) {
    auto why = connection_ ? connection_->failure() : failure(Error::connection_lost);
    return {Outcome::unavailable, std::move(why), {}};
  }
  return {Outcome::unavailable, failure(Error::no_answer, "no time was left"), {}};
}

asio::awaitable<Answer> TextClient::connect() {
  const auto connection = connection_;
  auto why = co_await connection->connect(server_, deadline());
  told_closed_ = is_closed_;
  if (!why.error) is_connected_ = true;
  if (!why.error) co_return Answer{Outcome::done, {}, {}};
  co_return Answer{Outcome::unavailable, std::move(why), {}};
}

/// No answer, or only a part of one.
Answer TextClient::broken() {
  told_closed_ = is_closed_;
  const auto connection = std::exchange(connection_, nullptr);
  if (!connection) return {Outcome::unknown, failure(Error::connection_lost), {}};
  auto why = connection->is_open() ? failure(Error::no_answer) : connection->failure();
  connection->close({});
  const bool is_full = why.error == make_error_code(Error::no_places);
  return {is_full ? Outcome::unavailable : Outcome::unknown, std::move(why), {}};
}

Answer TextClient::finish(Answer answer) {
  if (keeps_step(answer)) {
    if (connection_) connection_->answered();
  } else {
    drop();
  }
  return answer;
}

Answer TextClient::judge(std::string_view line) const {
  if (is_meta_) return judge_meta(line);
  if (line == "STORED") return {Outcome::done, {}, {}};
  if (line == "NOT_STORED") return {Outcome::not_stored, {}, {}};
  if (line == "NOT_FOUND") return {Outcome::not_found, {}, {}};
  if (line == "EXISTS") return {Outcome::exists, {}, {}};
  return judge_error(line);
}

Answer TextClient::judge_meta(std::string_view line) const {
  const auto meta = read_meta_line(line);
  if (!meta) return judge_error(line);
  if (meta->tag != last_tag_) return unexpected("an answer to another request");
  if (meta->code == "HD") return {Outcome::done, {}, {meta->cas, era()}};
  if (meta->code == "NS") return {Outcome::not_stored, {}, {}};
  if (meta->code == "NF") return {Outcome::not_found, {}, {}};
  if (meta->code == "EX") return {Outcome::exists, {}, {}};
  return unexpected(line);
}

asio::awaitable<Answer> TextClient::ask() {
  const auto connection = connection_;
  if (!is_connected_) {
    auto connected = co_await connect();
    if (!connected.done()) co_return connected;
  }
  connection->send();
  auto piece = connection->next(false);
  bool in_time = true;
  while (!piece && in_time && connection->is_open()) {
    in_time = co_await connection->more(deadline());
    piece = connection->next(false);
  }
  if (!piece) co_return broken();
  co_return finish(judge(piece->line));
}

asio::awaitable<Number> TextClient::ask_number() {
  const auto connection = connection_;
  Number number;
  if (!is_connected_) {
    number.answer = co_await connect();
    if (!number.answer.done()) co_return number;
  }
  connection->send();
  auto piece = connection->next(is_meta_);
  bool in_time = true;
  while (!piece && in_time && connection->is_open()) {
    in_time = co_await connection->more(deadline());
    piece = connection->next(is_meta_);
  }
  if (!piece) {
    number.answer = broken();
    co_return number;
  }
  const auto value = read_number(is_meta_ ? piece->data : piece->line);
  const auto meta = is_meta_ ? read_meta_line(piece->line) : std::nullopt;
  const bool is_ours = is_meta_ ? meta && meta->code == "VA" && meta->tag == last_tag_ : true;
  if (value && is_ours) {
    number.value = *value;
    number.answer = finish({Outcome::done, {}, {}});
    co_return number;
  }
  auto answer = judge(piece->line);
  if (answer.outcome != Outcome::not_found && !answer.failure.error) {
    answer = unexpected(piece->line);
  }
  // The command has no data: a server that does not count here keeps in step.
  const bool not_a_number = answer.failure.error == make_error_code(Error::refused) &&
                            piece->line.starts_with("CLIENT_ERROR");
  if (not_a_number) {
    connection->answered();
    number.answer = std::move(answer);
  } else {
    number.answer = finish(std::move(answer));
  }
  co_return number;
}

asio::awaitable<Found> TextClient::ask_items(const std::vector<std::string>& keys) {
  const auto connection = connection_;
  Found found;
  if (!is_connected_) {
    found.answer = co_await connect();
    if (!found.answer.done()) co_return found;
  }
  connection->send();
  bool in_time = true;
  for (;;) {
    const auto piece = connection->next(true);
    if (!piece) {
      if (!in_time || !connection->is_open()) break;
      in_time = co_await connection->more(deadline());
      continue;
    }
    const auto item = piece->has_data ? read_item_line(piece->line) : std::nullopt;
    if (!item) {
      const bool is_end = piece->line == "END";
      found.answer = finish(is_end ? Answer{Outcome::done, {}, {}} : judge_error(piece->line));
      co_return found;
    }
    if (std::find(keys.begin(), keys.end(), item->key) == keys.end()) {
      found.answer = finish(unexpected(piece->line));
      co_return found;
    }
    found.items.insert_or_assign(std::string(item->key), Item{std::string(piece->data), item->cas});
  }
  found.answer = broken();
  co_return found;
}

/// `probes`: `mn` was sent behind it, which only a server with meta commands answers.
asio::awaitable<Answer> TextClient::ask_stats(ServerInfo& into, bool probes) {
  const auto connection = connection_;
  if (!is_connected_) {
    auto connected = co_await connect();
    if (!connected.done()) co_return connected;
  }
  connection->send();
  bool in_time = true;
  bool ended = false;
  for (int lines = 0; lines < kMostStats;) {
    const auto piece = connection->next(false);
    if (!piece) {
      if (!in_time || !connection->is_open()) co_return broken();
      in_time = co_await connection->more(deadline());
      continue;
    }
    ++lines;
    auto line = piece->line;
    if (ended) {
      is_meta_ = line == "MN" && !into.is_proxy;
      const bool is_answer = line == "MN" || line == "ERROR";
      co_return finish(is_answer ? Answer{Outcome::done, {}, {}} : judge_error(line));
    }
    if (line == "END") {
      ended = true;
      if (!probes) co_return finish({Outcome::done, {}, {}});
      continue;
    }
    if (!line.starts_with("STAT ")) co_return finish(judge_error(line));
    line.remove_prefix(5);
    const auto space = std::min(line.find(' '), line.size());
    take_stat(into, line.substr(0, space), line.substr(std::min(space + 1, line.size())));
  }
  co_return finish(unexpected("statistics without end"));
}

asio::awaitable<Answer> TextClient::add(const std::string& key, const std::string& value,
                                        std::time_t exptime) {
  auto* into = out();
  if (into == nullptr) return as_awaitable(not_sent());
  const Stored what{key, value, flags_, exptime};
  if (is_meta_) {
    put_meta_add(what, last_tag_, *into);
  } else {
    put_add(what, *into);
  }
  return ask();
}

asio::awaitable<Answer> TextClient::cas(const std::string& key, const std::string& value,
                                        std::time_t exptime, std::uint64_t cas) {
  auto* into = out();
  if (into == nullptr) return as_awaitable(not_sent());
  const Stored what{key, value, flags_, exptime};
  if (is_meta_) {
    put_meta_cas(what, cas, last_tag_, *into);
  } else {
    put_cas(what, cas, *into);
  }
  return ask();
}

asio::awaitable<Answer> TextClient::remove(const std::string& key, std::uint64_t cas) {
  if (!is_meta_) return as_awaitable({Outcome::exists, {}, {}});
  auto* into = out();
  if (into == nullptr) return as_awaitable(not_sent());
  put_meta_delete(key, cas, last_tag_, *into);
  return ask();
}

asio::awaitable<Number> TextClient::increment(const std::string& key, std::uint64_t by) {
  auto* into = out();
  if (into == nullptr) {
    return [](Answer answer) -> asio::awaitable<Number> {
      Number number;
      number.answer = std::move(answer);
      co_return number;
    }(not_sent());
  }
  if (is_meta_) {
    put_meta_incr(key, by, last_tag_, *into);
  } else {
    put_incr(key, by, *into);
  }
  return ask_number();
}

asio::awaitable<Found> TextClient::gets(const std::vector<std::string>& keys) {
  auto* into = out();
  if (into == nullptr) {
    return [](Answer answer) -> asio::awaitable<Found> {
      Found found;
      found.answer = std::move(answer);
      co_return found;
    }(not_sent());
  }
  put_gets(keys, *into);
  return ask_items(keys);
}

asio::awaitable<Answer> TextClient::stats(ServerInfo& into) {
  auto* request = out();
  if (request == nullptr) return as_awaitable(not_sent());
  *request += "stats\r\n";
  return ask_stats(into, false);
}

asio::awaitable<Answer> TextClient::settings(ServerInfo& into) {
  auto* request = out();
  if (request == nullptr) return as_awaitable(not_sent());
  const bool probes = may_use_meta_ && has_meta_commands(into.version);
  *request += probes ? "stats settings\r\nmn\r\n" : "stats settings\r\n";
  return ask_stats(into, probes);
}

const MakeClient& text_driver() {
  static const MakeClient make = [](Env& env, Endpoint server, std::uint32_t flags) {
    return std::make_unique<TextClient>(env, std::move(server), flags, true);
  };
  return make;
}

}  // namespace dlock::memcached
