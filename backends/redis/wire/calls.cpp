// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/calls.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>

#include "dlock/spi/record_format.hpp"

namespace dlock::redis {
namespace {

using AnswerKind = ScriptAnswer::Kind;

Asked send(Env& env, Connection& connection, const Script& script, bool by_hash,
           const ScriptCall& call, FirstToHear first = FirstToHear::we) {
  const auto since = env.now();
  auto tag = std::to_string(connection.next_number());
  const std::array<Word, 3> head{by_hash ? "EVALSHA" : "EVAL", by_hash ? script.sha : script.text,
                                 Word(call.keys.size())};
  const std::array<Word, 1> last{tag};
  const std::array<Word, 1> ping{"PING"};
  const Words words{head, call.keys, call.arguments, last};
  auto pending =
      first == FirstToHear::we ? connection.send_words(words) : connection.send_both({ping}, words);
  return {&script, std::move(tag), since, std::move(pending)};
}

void take_error(Connection& connection, std::string text, ScriptAnswer& answer) {
  answer.kind = AnswerKind::refused;
  answer.verdict = judge(text);
  answer.failure = {answer.verdict.error, std::move(text)};
  if (answer.verdict.next == Verdict::Next::reconnect) connection.close(answer.failure);
}

/// Makes a refusal of {kNewerFormat, key, version}.
void refuse_newer_format(ScriptAnswer& answer) {
  constexpr std::size_t kItems = 3;
  if (answer.code() != kNewerFormat || answer.items.size() != kItems) return;
  auto text = newer_format(answer.items[1].text, answer.items[2].text, kFormatStamp, kFormat);
  if (text.empty()) return;
  answer.kind = AnswerKind::refused;
  answer.verdict = {Error::newer_format, Verdict::Next::give_up};
  answer.failure = {Error::newer_format, std::move(text)};
  answer.items.clear();
}

/// Moves the items of a reply before its tag to `items`. The reply is a list, or `code tag`.
/// Returns false if the reply does not have that tag.
bool take_items(std::string_view tag, Reply& reply, Replies& items) {
  if (reply.kind == Reply::Kind::text) {
    const std::string_view text = reply.text;
    const auto gap = text.find(' ');
    if (gap == std::string_view::npos || text.substr(gap + 1) != tag) return false;
    auto& code = items.emplace_back();
    code.kind = Reply::Kind::integer;
    return std::from_chars(text.data(), text.data() + gap, code.integer).ptr == text.data() + gap;
  }
  if (reply.kind != Reply::Kind::array || reply.items.empty()) return false;
  if (reply.items.back().text != tag) return false;
  items = std::move(reply.items);
  items.pop_back();
  return true;
}

void take_reply(Connection& connection, const Asked& sent, Reply reply, ScriptAnswer& answer) {
  if (reply.is_error()) {
    return take_error(connection, std::move(reply.text), answer);
  }
  if (!take_items(sent.tag, reply, answer.items)) {
    answer.items.clear();
    answer.kind = AnswerKind::unknown;
    answer.failure = {Error::unexpected, "a reply does not belong to its request"};
    return connection.close(answer.failure);
  }
  answer.kind = AnswerKind::reply;
  refuse_newer_format(answer);
}

}  // namespace

void Asked::explain(const Script& script, const ScriptCall& call, ScriptAnswer& answer) {
  auto& text = answer.failure.text;
  if (answer.verdict.error == Error::foreign_format) {
    std::vector<std::string> keys;
    for (const auto& one : call.keys) keys.push_back(one.text());
    const auto* key = wrong_key(text, script.text, keys);
    if (key != nullptr && *key != keys.front()) answer.verdict.error = Error::foreign_aside;
    if (key != nullptr) text += fmt::format(" That is the key '{}'.", *key);
  }
  if (const auto command = refused_command(text, script.text); !command.empty()) {
    text += fmt::format(" That is '{0}': ACL SETUSER <user> +{0}", command);
  }
  answer.failure.error = answer.verdict.error;
}

ScriptAnswer Asked::take(Env& env, Connection& connection) const {
  ScriptAnswer answer;
  auto outcome = pending.take();
  if (!outcome) {
    // Replies arrive in order. So a server that sent nothing since then is silent.
    answer.kind = AnswerKind::unknown;
    answer.failure = {Error::no_answer, ""};
    if (connection.is_silent(since, env.now())) connection.close(answer.failure);
    return answer;
  }
  switch (outcome->kind) {
    case Outcome::Kind::reply:
      take_reply(connection, *this, std::move(outcome->reply), answer);
      break;
    case Outcome::Kind::not_sent:
    case Outcome::Kind::lost:
      answer.kind =
          outcome->kind == Outcome::Kind::lost ? AnswerKind::unknown : AnswerKind::not_sent;
      answer.failure = connection.failure();
      break;
  }
  return answer;
}

Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          FirstToHear first) {
  return send(env, connection, script, true, call, first);
}

Asked ask(Env& env, Connection& connection, const Script& script, const ScriptCall& call,
          ScriptBy by) {
  return send(env, connection, script, by == ScriptBy::hash, call);
}

bool is_unknown_hash(const ScriptAnswer& answer) {
  return answer.kind == AnswerKind::refused && answer.verdict.next == Verdict::Next::load_script;
}

std::int64_t ScriptAnswer::code() const noexcept {
  if (kind != AnswerKind::reply || items.empty()) return -1;
  return items.front().kind == Reply::Kind::integer ? items.front().integer : -1;
}

asio::awaitable<std::vector<ScriptAnswer>> run_scripts(Env& env,
                                                       std::shared_ptr<Connection> connection,
                                                       const Script& script,
                                                       std::vector<ScriptCall> calls,
                                                       TimePoint deadline) {
  std::vector<ScriptAnswer> answers(calls.size());
  std::vector<std::size_t> todo(calls.size());
  for (std::size_t i = 0; i < todo.size(); ++i) todo[i] = i;
  for (int pass = 0; pass < 2 && !todo.empty(); ++pass) {
    const bool by_hash = pass == 0;
    std::vector<Asked> sent;
    sent.reserve(todo.size());
    for (const auto i : todo) sent.push_back(send(env, *connection, script, by_hash, calls[i]));
    std::vector<std::size_t> again;
    for (std::size_t n = 0; n < todo.size(); ++n) {
      co_await sent[n].pending.settled(deadline);
      answers[todo[n]] = sent[n].answer(env, *connection, [&] { return calls[todo[n]]; });
      if (is_unknown_hash(answers[todo[n]])) again.push_back(todo[n]);
    }
    todo = std::move(again);
  }
  co_return answers;
}

asio::awaitable<ScriptAnswer> run_text(Env& env, std::shared_ptr<Connection> connection,
                                       const Script& script, const ScriptCall& call,
                                       TimePoint deadline) {
  const auto sent = send(env, *connection, script, false, call);
  co_await sent.pending.settled(deadline);
  co_return sent.answer(env, *connection, [&] { return call; });
}

asio::awaitable<ScriptAnswer> run_script(Env& env, std::shared_ptr<Connection> connection,
                                         const Script& script, const ScriptCall& call,
                                         TimePoint deadline) {
  const auto asked = ask(env, *connection, script, call);
  co_await asked.pending.settled(deadline);
  auto answer = asked.answer(env, *connection, [&] { return call; });
  if (is_unknown_hash(answer)) {
    answer = co_await run_text(env, connection, script, call, deadline);
  }
  co_return answer;
}

}  // namespace dlock::redis
