// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/server.hpp"

#include <fmt/format.h>

#include <charconv>

#include "tests/simulation/redis/lua.hpp"
#include "tests/simulation/redis/session.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr std::int64_t kEpoch_us = 1'700'000'000'000'000;

std::int64_t world_us(TimePoint when) {
  return std::chrono::duration_cast<microseconds>(when.time_since_epoch()).count();
}

std::size_t to_size(const std::string& text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string make_run_id(World& world) {
  return fmt::format("{:016x}{:016x}{:08x}", world.random(), world.random(),
                     world.random() & 0xFFFFFFFFU);
}

Server::Server(World& world, ServerSettings settings, Lineage lineage)
    : world_(world),
      settings_(std::move(settings)),
      lineage_(std::move(lineage)),
      run_id_(make_run_id(world)) {}

Server::~Server() = default;

std::int64_t Server::now_us() const noexcept {
  return kEpoch_us + world_us(world_.now()) + clock_offset_.count() * 1000;
}

TimePoint Server::world_time(std::int64_t expires_ms) const noexcept {
  const auto us = (expires_ms + 1) * 1000 - kEpoch_us - clock_offset_.count() * 1000;
  return TimePoint(microseconds(us));
}

std::int64_t Server::admit(std::shared_ptr<Session> session) {
  sessions_.emplace(++last_session_, std::move(session));
  return last_session_;
}

void Server::dismiss(Session& session) { sessions_.erase(session.id()); }

void Server::take_over(Server& from) {
  auto sessions = std::exchange(from.sessions_, {});
  for (const auto& [id, session] : sessions) {
    if (!session->channels.empty()) {
      session->break_off();
      continue;
    }
    session->move_to(weak_from_this());
    session->set_id(admit(session));
  }
}

void Server::disconnect_all() {
  const auto sessions = std::exchange(sessions_, {});
  for (const auto& [id, session] : sessions) session->break_off();
}

std::multiset<std::string> Server::subscriptions() const {
  std::multiset<std::string> all;
  for (const auto& [id, session] : sessions_) {
    for (const auto& channel : session->channels) all.insert(channel);
  }
  return all;
}

CommandContext Server::context() {
  return {keys_, now_us(),
          [this](const std::string& channel, const std::string& text) {
            return publish(channel, text);
          },
          [this] { return info(); }};
}

Reply Server::serve(Session& session, const Command& command) {
  ++served_;
  if (before_command) before_command();
  const auto name = upper(command.front());
  const bool answers_meanwhile = name == "INFO" || name == "CONFIG" || name == "CLIENT" ||
                                 name == "SUBSCRIBE" || name == "AUTH" || name == "SELECT";
  if (is_loading() && !answers_meanwhile) {
    return error("LOADING Redis is loading the dataset in memory");
  }
  if (name == "EVALSHA" || name == "EVAL") return evaluate(command, name == "EVALSHA");
  if (name == "SCRIPT") return script(command);
  if (name == "SUBSCRIBE") return subscribe(session, command);
  if (name == "PING") {
    return session.channels.empty() ? status("PONG") : array({bulk("pong"), bulk("")});
  }
  if (name == "CONFIG") return config(command);
  if (name == "CLIENT") return client(session, command);
  if (name == "AUTH" || name == "SELECT") return status("OK");
  auto with = context();
  return run_command(with, command);
}

bool Server::is_loading() const noexcept { return world_.now() < loading_until_; }

Reply Server::info() const {
  return bulk(fmt::format(
      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{}\r\n"
      "# Memory\r\nmaxmemory_policy:{}\r\n"
      "# Persistence\r\nloading:{}\r\naof_enabled:{}\r\naof_last_write_status:ok\r\n"
      "# Replication\r\nrole:master\r\nconnected_slaves:{}\r\nmaster_replid:{}\r\n"
      "master_replid2:{}\r\n# Cluster\r\ncluster_enabled:0\r\n",
      run_id_, settings_.eviction_policy, is_loading() ? 1 : 0, settings_.append_only ? 1 : 0,
      settings_.replicas, lineage_.id, lineage_.previous));
}

Reply Server::config(const Command& command) const {
  const auto& name = command.at(2);
  if (name == "appendfsync") return array({bulk(name), bulk(settings_.fsync)});
  if (name == "no-appendfsync-on-rewrite") return array({bulk(name), bulk("no")});
  return array({});
}

Reply Server::client(Session& session, const Command& command) {
  const auto what = upper(command.at(1));
  if (what == "ID") return integer(session.id());
  if (what != "KILL" || command.size() != 4 || upper(command[2]) != "ID") {
    return error("ERR syntax error");
  }
  if (!kill_allowed_) {
    return error("NOPERM this user has no permissions to run the 'client|kill' command");
  }
  const auto found = sessions_.find(static_cast<std::int64_t>(to_size(command[3])));
  if (found == sessions_.end()) return integer(0);
  const auto killed = found->second;
  killed->break_off();
  return integer(1);
}

Reply Server::subscribe(Session& session, const Command& command) {
  session.channels.insert(command.at(1));
  return array({bulk("subscribe"), bulk(command[1]),
                integer(static_cast<std::int64_t>(session.channels.size()))});
}

std::int64_t Server::publish(const std::string& channel, const std::string& text) {
  std::int64_t heard = 0;
  for (const auto& [id, session] : sessions_) {
    if (session->channels.find(channel) == session->channels.end()) continue;
    ++heard;
    session->push_later(array({bulk("message"), bulk(channel), bulk(text)}));
  }
  return heard;
}

Reply Server::script(const Command& command) {
  if (upper(command.at(1)) != "LOAD" || command.size() != 3) return error("ERR syntax error");
  const auto sha = sha1_hex(command[2]);
  if (const auto why = Lua::instance().compile(sha, command[2]); !why.empty()) {
    return error(fmt::format("ERR Error compiling script (new function): {}", why));
  }
  known_scripts_.insert(sha);
  return bulk(sha);
}

Reply Server::evaluate(const Command& command, bool by_hash) {
  if (command.size() < 3) return error("ERR wrong number of arguments");
  const auto sha = by_hash ? command[1] : sha1_hex(command[1]);
  if (by_hash && known_scripts_.find(sha) == known_scripts_.end()) {
    return error("NOSCRIPT No matching script. Please use EVAL.");
  }
  if (const auto why = Lua::instance().compile(sha, by_hash ? "" : command[1]); !why.empty()) {
    return error(fmt::format("ERR Error compiling script (new function): {}", why));
  }
  known_scripts_.insert(sha);
  const auto count = to_size(command[2]);
  if (count > command.size() - 3) {
    return error("ERR Number of keys can't be greater than number of args");
  }
  const auto keys_end = command.begin() + 3 + static_cast<std::ptrdiff_t>(count);
  const std::vector<std::string> keys(command.begin() + 3, keys_end);
  const std::vector<std::string> arguments(keys_end, command.end());
  auto with = context();
  return Lua::instance().run(sha, keys, arguments, with);
}

}  // namespace dlock::simulation::redis
