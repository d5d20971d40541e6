// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace dlock::simulation::redis {
namespace {

using Handler = Reply (*)(CommandContext&, const Command&);

Reply wrong_type() {
  return error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
Reply not_an_integer() { return error("ERR value is not an integer or out of range"); }

template <class Number>
std::optional<Number> number(const std::string& text) {
  Number parsed{};
  const auto* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, parsed);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return parsed;
}

/// As Redis prints a score.
std::string score_text(double score) { return fmt::format("{:.17g}", score); }

/// Returns null for a missing key. Sets `wrong` for a key of another type.
template <class Type>
const Type* value_of(CommandContext& context, const std::string& key, bool& wrong) {
  const auto* entry = context.keys.find(key, context.now_ms());
  if (entry == nullptr) return nullptr;
  const auto* value = std::get_if<Type>(&entry->value);
  wrong = value == nullptr;
  return value;
}

Reply get(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* text = value_of<std::string>(context, command[1], wrong);
  if (wrong) return wrong_type();
  return text != nullptr ? bulk(*text) : nil();
}

Reply mget(CommandContext& context, const Command& command) {
  Replies items;
  for (std::size_t i = 1; i < command.size(); ++i) {
    bool wrong = false;
    const auto* text = value_of<std::string>(context, command[i], wrong);
    items.push_back(text != nullptr ? bulk(*text) : nil());
  }
  return array(std::move(items));
}

Reply set(CommandContext& context, const Command& command) {
  Entry entry;
  entry.value = command[2];
  bool only_new = false;
  bool only_old = false;
  for (std::size_t i = 3; i < command.size(); ++i) {
    const auto option = upper(command[i]);
    if (option == "NX") {
      only_new = true;
    } else if (option == "XX") {
      only_old = true;
    } else if (option == "PX" && i + 1 < command.size()) {
      const auto time = number<std::int64_t>(command[++i]);
      if (!time) return not_an_integer();
      if (*time <= 0) return error("ERR invalid expire time in 'set' command");
      entry.expires_ms = context.now_ms() + *time;
    } else {
      return error("ERR syntax error");
    }
  }
  if (only_new && only_old) return error("ERR syntax error");
  const bool is_there = context.keys.find(command[1], context.now_ms()) != nullptr;
  if ((only_new && is_there) || (only_old && !is_there)) return nil();
  context.keys.put(command[1], std::move(entry));
  return status("OK");
}

Reply del(CommandContext& context, const Command& command) {
  std::int64_t removed = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (context.keys.remove(command[i], context.now_ms())) ++removed;
  }
  return integer(removed);
}

Reply exists(CommandContext& context, const Command& command) {
  std::int64_t there = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (context.keys.find(command[i], context.now_ms()) != nullptr) ++there;
  }
  return integer(there);
}

Reply incr(CommandContext& context, const Command& command) {
  const auto* entry = context.keys.find(command[1], context.now_ms());
  Entry next = entry != nullptr ? *entry : Entry{"0", std::nullopt};
  auto* text = std::get_if<std::string>(&next.value);
  if (text == nullptr) return wrong_type();
  const auto before = number<std::int64_t>(*text);
  if (!before) return not_an_integer();
  *text = std::to_string(*before + 1);
  context.keys.put(command[1], std::move(next));
  return integer(*before + 1);
}

Reply type(CommandContext& context, const Command& command) {
  const auto* entry = context.keys.find(command[1], context.now_ms());
  if (entry == nullptr) return status("none");
  if (std::holds_alternative<Hash>(entry->value)) return status("hash");
  return status(std::holds_alternative<std::string>(entry->value) ? "string" : "zset");
}

Reply pexpire(CommandContext& context, const Command& command) {
  const auto time = number<std::int64_t>(command[2]);
  if (!time) return not_an_integer();
  const auto* entry = context.keys.find(command[1], context.now_ms());
  if (entry == nullptr) return integer(0);
  if (*time <= 0) {
    context.keys.remove(command[1], context.now_ms());
    return integer(1);
  }
  auto longer = *entry;
  longer.expires_ms = context.now_ms() + *time;
  context.keys.put(command[1], std::move(longer));
  return integer(1);
}

Reply pttl(CommandContext& context, const Command& command) {
  const auto* entry = context.keys.find(command[1], context.now_ms());
  if (entry == nullptr) return integer(-2);
  return integer(entry->expires_ms ? *entry->expires_ms - context.now_ms() : -1);
}

Reply time(CommandContext& context, const Command&) {
  return array({bulk(std::to_string(context.now_us / 1'000'000)),
                bulk(std::to_string(context.now_us % 1'000'000))});
}

Reply publish(CommandContext& context, const Command& command) {
  return integer(context.publish ? context.publish(command[1], command[2]) : 0);
}

Reply zadd(CommandContext& context, const Command& command) {
  char* end = nullptr;
  const double score = std::strtod(command[2].c_str(), &end);
  if (command[2].empty() || *end != 0 || std::isnan(score)) {
    return error("ERR value is not a valid float");
  }
  const auto* entry = context.keys.find(command[1], context.now_ms());
  Entry next = entry != nullptr ? *entry : Entry{SortedSet{}, std::nullopt};
  auto* members = std::get_if<SortedSet>(&next.value);
  if (members == nullptr) return wrong_type();
  const bool added = members->insert_or_assign(command[3], score).second;
  context.keys.put(command[1], std::move(next));
  return integer(added ? 1 : 0);
}

/// ZREM of a SortedSet, HDEL of a Hash. Deletes the key with its last member.
template <class Members>
Reply remove_members(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* found = value_of<Members>(context, command[1], wrong);
  if (wrong) return wrong_type();
  if (found == nullptr) return integer(0);
  auto next = *context.keys.find(command[1], context.now_ms());
  auto& members = std::get<Members>(next.value);
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < command.size(); ++i) {
    removed += static_cast<std::int64_t>(members.erase(command[i]));
  }
  if (removed == 0) return integer(0);
  if (members.empty()) {
    context.keys.remove(command[1], context.now_ms());
  } else {
    context.keys.put(command[1], std::move(next));
  }
  return integer(removed);
}

/// ZCARD of a SortedSet, HLEN of a Hash.
template <class Members>
Reply count_members(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* members = value_of<Members>(context, command[1], wrong);
  if (wrong) return wrong_type();
  return integer(members == nullptr ? 0 : static_cast<std::int64_t>(members->size()));
}

Reply hset(CommandContext& context, const Command& command) {
  const auto* entry = context.keys.find(command[1], context.now_ms());
  Entry next = entry != nullptr ? *entry : Entry{Hash{}, std::nullopt};
  auto* fields = std::get_if<Hash>(&next.value);
  if (fields == nullptr) return wrong_type();
  const bool added = fields->insert_or_assign(command[2], command[3]).second;
  context.keys.put(command[1], std::move(next));
  return integer(added ? 1 : 0);
}

Reply hget(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* fields = value_of<Hash>(context, command[1], wrong);
  if (wrong) return wrong_type();
  if (fields == nullptr) return nil();
  const auto found = fields->find(command[2]);
  return found == fields->end() ? nil() : bulk(found->second);
}

/// By score, then by name.
std::vector<std::string> ordered(const SortedSet& members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const auto& [name, score] : members) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const auto& a, const auto& b) { return members.at(a) < members.at(b); });
  return names;
}

Reply zrange(CommandContext& context, const Command& command) {
  auto from = number<std::int64_t>(command[2]);
  auto to = number<std::int64_t>(command[3]);
  if (!from || !to) return not_an_integer();
  bool wrong = false;
  const auto* members = value_of<SortedSet>(context, command[1], wrong);
  if (wrong) return wrong_type();
  if (members == nullptr) return array({});
  const auto names = ordered(*members);
  const auto count = static_cast<std::int64_t>(names.size());
  if (*from < 0) from = std::max<std::int64_t>(*from + count, 0);
  if (*to < 0) to = *to + count;
  Replies items;
  for (auto i = *from; i <= std::min(*to, count - 1); ++i) {
    items.push_back(bulk(names[static_cast<std::size_t>(i)]));
  }
  return array(std::move(items));
}

Reply zrank(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* members = value_of<SortedSet>(context, command[1], wrong);
  if (wrong) return wrong_type();
  if (members == nullptr) return nil();
  const auto names = ordered(*members);
  const auto found = std::find(names.begin(), names.end(), command[2]);
  return found == names.end() ? nil() : integer(found - names.begin());
}

Reply zscore(CommandContext& context, const Command& command) {
  bool wrong = false;
  const auto* members = value_of<SortedSet>(context, command[1], wrong);
  if (wrong) return wrong_type();
  if (members == nullptr) return nil();
  const auto found = members->find(command[2]);
  return found == members->end() ? nil() : bulk(score_text(found->second));
}

Reply info(CommandContext& context, const Command&) { return context.info(); }

struct Known {
  Handler run;
  int arity;  ///< with the command's name; negative: at least
};

const std::map<std::string, Known>& commands() {
  static const std::map<std::string, Known> all{
      {"GET", {&get, 2}},
      {"MGET", {&mget, -2}},
      {"SET", {&set, -3}},
      {"DEL", {&del, -2}},
      {"INCR", {&incr, 2}},
      {"TYPE", {&type, 2}},
      {"PEXPIRE", {&pexpire, 3}},
      {"PTTL", {&pttl, 2}},
      {"TIME", {&time, 1}},
      {"PUBLISH", {&publish, 3}},
      {"ZADD", {&zadd, 4}},
      {"ZREM", {&remove_members<SortedSet>, -3}},
      {"ZRANGE", {&zrange, 4}},
      {"ZRANK", {&zrank, 3}},
      {"ZSCORE", {&zscore, 3}},
      {"ZCARD", {&count_members<SortedSet>, 2}},
      {"EXISTS", {&exists, -2}},
      {"INFO", {&info, -1}},
      {"HSET", {&hset, 4}},
      {"HGET", {&hget, 3}},
      {"HDEL", {&remove_members<Hash>, -3}},
      {"HLEN", {&count_members<Hash>, 2}},
  };
  return all;
}

}  // namespace

std::string upper(std::string text) {
  for (auto& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

Reply run_command(CommandContext& context, const Command& command) {
  const auto found = commands().find(upper(command.front()));
  if (found == commands().end()) {
    return error(fmt::format("ERR unknown command '{}'", command.front()));
  }
  const auto [run, arity] = found->second;
  const auto words = static_cast<int>(command.size());
  if (arity < 0 ? words < -arity : words != arity) {
    return error("ERR wrong number of arguments for '" + command.front() + "' command");
  }
  return run(context, command);
}

}  // namespace dlock::simulation::redis
