// SPDX-License-Identifier: Apache-2.0
//
// Requests to a holder to release the lock. The request is stored beside the lock. A message only
// says that the holder should read it. If the message is lost, the holder reads the request at its
// next renewal.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/value.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

/// Reads `time within requester`, with `-` for no time. Any client may have written the text.
Revocation read_asked(std::string_view text) {
  Revocation how;
  text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  const auto gap = text.find(' ');
  std::int64_t within = 0;
  const auto number = text.substr(0, gap);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), within);
  constexpr std::int64_t kYear_ms = 365LL * 24 * 3'600'000;
  if (error == std::errc() && end == number.data() + number.size()) {
    how.within = milliseconds(std::clamp<std::int64_t>(within, 0, kYear_ms));
  }
  if (gap != std::string_view::npos) how.who = text.substr(gap + 1);
  return how;
}

}  // namespace

/// Also whether it was asked by now: after the grant, with each renewal and each message.
void RedisBackend::listen_for_askings(const KeyClaimPtr& claim) {
  if (!claim->request().tell_asked) return;
  spawn(env_, look_for_asking(alive_, this, claim));
}

asio::awaitable<void> RedisBackend::look_for_asking(std::weak_ptr<bool> alive, RedisBackend* self,
                                                    KeyClaimPtr claim) {
  if (alive.expired() || !self->link_->up()) co_return;
  const auto& request = claim->request();
  auto suffix = std::string(kAskKey);
  if (claim->may_read()) suffix += "%" + request.owner.id;
  ScriptCall call;
  call.keys = {claim->beside(suffix)};
  const auto memory = static_cast<std::uint64_t>(2 * request.lease.count());
  call.arguments = {std::string_view(request.owner.id), Word(memory)};
  const auto deadline = self->env_.now() + request.lease / 3;
  const auto connection = self->link_->connection();
  const auto answer = co_await run_script(self->env_, connection, scripts().listen, call, deadline);
  if (alive.expired()) co_return;
  if (answer.failure.error == Error::newer_format) self->tell_of_request(answer.failure);
  if (answer.kind != ScriptAnswer::Kind::reply) co_return;
  if (answer.items.size() != 2 || answer.items[1].text.empty()) co_return;
  const auto& text = answer.items[1].text;
  if (std::exchange(claim->asked_for, text) == text) co_return;
  self->sink_.on_asked(claim, read_asked(text));
}

/// Warns once: the holder reads the key at each renewal.
void RedisBackend::tell_of_request(const Failure& why) {
  if (std::exchange(request_told_, true)) return;
  sink_.on_warning("a request to release a lock cannot be read: " + why.text);
}

asio::awaitable<AskAnswer> RedisBackend::ask(std::string name, std::uint64_t token, Revocation how,
                                             TimePoint deadline) {
  AskAnswer result;
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    result.failure = link_->failure();
    co_return result;
  }
  const auto keys = names_.base(name);
  const auto text = fmt::format(
      "{} {}", how.within ? fmt::format("{}", how.within->count()) : std::string("-"), how.who);
  const auto asked_token = token == 0 ? std::string() : std::to_string(token);
  ScriptCall call;
  call.keys = {keys.lock(), Word(keys.text, kAskKey)};
  call.arguments = {asked_token, text, kChannelPrefix};
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, scripts().ask, call, deadline);
  if (answer.kind != ScriptAnswer::Kind::reply) {
    result.failure = answer.failure;
    co_return result;
  }
  const auto held = read_value(answer.items.size() > 1 ? answer.items[1].text : std::string());
  result.token = held.token.value_or(0);
  switch (static_cast<AskCode>(answer.code())) {
    case AskCode::listens:
      result.heard = Heard::yes;
      break;
    case AskCode::unheard:
      result.heard = Heard::no;
      break;
    case AskCode::not_held:
      result.failure = {Error::not_held, name};
      break;
    case AskCode::sealed:
      result.failure = {Error::sealed, "dlock migrate moves or opens it"};
      break;
    case AskCode::other_token:
      result.failure = {Error::held_with_other_token,
                        fmt::format("{} is held with token {}", name, result.token)};
      break;
  }
  co_return result;
}

asio::awaitable<std::optional<std::size_t>> RedisBackend::waiting_before(KeyClaimPtr claim,
                                                                         TimePoint deadline) {
  ScriptCall call;
  call.keys = {claim->beside(kQueueKey), claim->beside(kAliveKey)};
  call.arguments = {claim->waiter, Word(std::uint64_t{*claim->request().max_queue})};
  const auto connection = link_->connection();
  const auto answer =
      co_await run_script(env_, connection, scripts().waiting_before, call, deadline);
  if (answer.kind != ScriptAnswer::Kind::reply) co_return std::nullopt;
  co_return static_cast<std::size_t>(std::max<std::int64_t>(answer.code(), 0));
}

}  // namespace dlock::redis
