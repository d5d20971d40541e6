// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/inspection.hpp"

#include <fmt/format.h>

#include "backends/redis/error.hpp"
#include "backends/redis/rules/value.hpp"
#include "backends/redis/scripts/scripts.hpp"

namespace dlock::redis {
namespace {

std::vector<Pending> ask(Connection& connection) {
  std::vector<Pending> asked;
  asked.push_back(connection.send(words({"INFO"})));
  asked.push_back(connection.send(words({"CLIENT", "ID"})));
  asked.push_back(connection.send(words({"CONFIG", "GET", "appendfsync"})));
  asked.push_back(connection.send(words({"CONFIG", "GET", "no-appendfsync-on-rewrite"})));
  // No such script: NOSCRIPT says that EVALSHA is allowed.
  asked.push_back(connection.send(words({"EVALSHA", std::string(40, '0'), "0"})));
  asked.push_back(connection.send(words({"EVAL", "return 1", "0"})));
  // Where this is not allowed, the first use of each sends its text.
  for (const auto* script :
       {&scripts().acquire, &scripts().renew, &scripts().release, &scripts().release_unwanted}) {
    asked.push_back(connection.send(words({"SCRIPT", "LOAD", script->text})));
  }
  asked.push_back(connection.send(words({"TIME"})));
  // No client subscribes to this channel. A release could only ignore a refusal.
  asked.push_back(connection.send(words({"PUBLISH", std::string(kChannelPrefix) + "probe", ""})));
  return asked;
}

std::optional<std::string> config_value(const Reply& reply) {
  if (reply.kind != Reply::Kind::array || reply.items.size() != 2) return std::nullopt;
  return reply.items[1].text;
}

/// Unit: us. 0: the reply is not a time.
std::uint64_t time_in(const Reply& reply) {
  if (reply.kind != Reply::Kind::array || reply.items.size() != 2) return 0;
  return read_token(reply.items[0].text) * 1'000'000 + read_token(reply.items[1].text);
}

void refuse(Inspected& result, const Verdict& verdict, std::string text) {
  result.failure = {verdict.error, std::move(text)};
  result.permanent = is_permanent(verdict);
}

void judge_facts(Inspected& result) {
  const auto& facts = result.facts;
  if (facts.sentinel || facts.cluster) {
    return refuse(result, {Error::cluster, Verdict::Next::give_up},
                  facts.sentinel ? "the port is a Sentinel's" : "cluster_enabled is 1");
  }
  if (facts.loading) refuse(result, {Error::loading, Verdict::Next::retry}, "");
  if (facts.replica) refuse(result, {Error::read_only, Verdict::Next::retry}, "role:slave");
}

/// Sets what a step's error means for the whole inspection.
void judge_reply(std::size_t step, const Reply& reply, Inspected& result) {
  if (!reply.is_error()) return;
  const auto verdict = judge(reply.text);
  const bool scripting = step == 4 || step == 5;
  // Not allowed: we do without, except for scripts.
  const bool optional =
      !scripting && (verdict.error == Error::access_denied || verdict.error == Error::unexpected);
  const bool locked_out = reply.text.starts_with("NOAUTH") || reply.text.starts_with("DENIED");
  if (verdict.next == Verdict::Next::load_script || (optional && !locked_out)) return;
  if (step > 5) return;
  refuse(result, verdict, reply.text);
}

}  // namespace

asio::awaitable<Inspected> inspect_server(Env& env, std::shared_ptr<Connection> connection,
                                          TimePoint deadline) {
  Inspected result;
  const auto sent = env.now();
  auto asked = ask(*connection);
  std::vector<Reply> replies;
  replies.reserve(asked.size());
  for (auto& one : asked) {
    auto outcome = co_await one.get_until(deadline);
    if (!outcome || outcome->kind != Outcome::Kind::reply) {
      result.failure =
          connection->is_open() ? Failure{Error::no_answer, ""} : connection->failure();
      result.permanent = result.failure.error == Error::tls_failed ||
                         (replies.empty() && result.failure.error == Error::unexpected);
      // A server without places says so, and closes.
      if (!replies.empty()) judge_reply(0, replies[0], result);
      co_return result;
    }
    replies.push_back(std::move(outcome->reply));
  }
  for (std::size_t i = 0; i < replies.size() && !result.failure.error; ++i) {
    judge_reply(i, replies[i], result);
  }
  if (replies[0].kind == Reply::Kind::text) result.facts = facts_from(parse_info(replies[0].text));
  if (replies[1].kind == Reply::Kind::integer) result.client_id = replies[1].integer;
  result.facts.fsync = config_value(replies[2]);
  result.facts.no_fsync_on_rewrite = config_value(replies[3]);
  result.facts.time = time_in(replies[replies.size() - 2]);
  result.facts.time_asked = sent;
  if (replies.back().is_error()) result.facts.publish_refused = replies.back().text;
  if (!result.failure.error) judge_facts(result);
  co_return result;
}

asio::awaitable<bool> kill_clients(std::shared_ptr<Connection> connection,
                                   std::vector<std::int64_t> ids, TimePoint deadline) {
  std::vector<Pending> asked;
  asked.reserve(ids.size());
  bool allowed = true;
  for (const auto id : ids) {
    if (id == 0) {
      allowed = false;
      continue;
    }
    asked.push_back(connection->send(words({"CLIENT", "KILL", "ID", std::to_string(id)})));
  }
  for (auto& one : asked) {
    const auto outcome = co_await one.get_until(deadline);
    const bool replied = outcome && outcome->kind == Outcome::Kind::reply;
    // `ERR No such client`, or 0: that connection has ended already.
    const bool denied = replied && outcome->reply.text.starts_with("NOPERM");
    if (!replied || denied) allowed = false;
  }
  co_return allowed;
}

}  // namespace dlock::redis
