// SPDX-License-Identifier: Apache-2.0
//
// A small Memcached server for servers that lie: add, compare-and-set, delete and read, in both
// dialects. Counters are never there. Thread safety: all members may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace dlock::hostile {

inline constexpr const char* kStats =
    "STAT pid 7\r\nSTAT uptime 100\r\nSTAT time 1700000000\r\nSTAT version 1.6.18\r\n"
    "STAT evictions off\r\nEND\r\n";

struct MemcachedCommand {
  std::string line;
  std::string data;

  bool is(const std::string& verb) const { return line == verb || line.starts_with(verb + " "); }
  std::vector<std::string> words() const {
    std::istringstream text(line);
    std::vector<std::string> all;
    for (std::string word; text >> word;) all.push_back(word);
    return all;
  }
};

/// Removes a line and the data behind it from the front. An empty line: more has to arrive.
inline MemcachedCommand take_command(std::string& bytes) {
  const auto end = bytes.find("\r\n");
  if (end == std::string::npos) return {};
  MemcachedCommand command{bytes.substr(0, end), {}};
  std::size_t size = end + 2;
  const auto words = command.words();
  const bool is_classic = command.is("add") || command.is("cas");
  if (is_classic || command.is("ms")) {
    // add KEY FLAGS EXPTIME BYTES, ms KEY BYTES FLAGS
    const auto length = std::stoul(words.at(is_classic ? 4 : 2));
    size += length + 2;
    if (bytes.size() < size) return {};
    command.data = bytes.substr(end + 2, length);
  }
  bytes.erase(0, size);
  return command;
}

class SmallMemcached {
 public:
  enum class Honors { conditions, nothing };
  explicit SmallMemcached(Honors honors = Honors::conditions) : honors_(honors) {}

  std::string answer(const MemcachedCommand& command) {
    const std::lock_guard lock(mutex_);
    const auto words = command.words();
    if (command.line == "mn") return "MN\r\n";
    if (command.is("stats")) return kStats;
    if (command.is("version")) return "VERSION 1.6.18\r\n";
    if (command.is("get") || command.is("gets")) return read(words);
    if (command.is("incr")) return "NOT_FOUND\r\n";
    if (command.is("ma")) return "NF" + tag_in(words) + "\r\n";
    if (command.is("add")) return classic(store(words[1], command.data, true, 0, words[3]));
    if (command.is("cas")) {
      return classic(store(words[1], command.data, false, std::stoull(words[5]), words[3]));
    }
    if (command.is("ms")) {
      const bool is_add = words.back() == "ME";
      const auto code =
          store(words[1], command.data, is_add, number_in(words), flag_in(words, 'T'));
      const auto number = code == "HD" ? fmt::format(" c{}", last_) : std::string();
      return code + number + tag_in(words) + "\r\n";
    }
    if (command.is("md")) {
      const auto code = judge(words[1], false, number_in(words));
      if (code == "HD") items_.erase(words[1]);
      return code + tag_in(words) + "\r\n";
    }
    return "ERROR\r\n";
  }

 private:
  struct Item {
    std::string value;
    std::uint64_t number = 0;
  };

  static std::string flag_in(const std::vector<std::string>& words, char flag) {
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i].front() == flag) return words[i].substr(1);
    }
    return "0";
  }
  static std::uint64_t number_in(const std::vector<std::string>& words) {
    return std::stoull(flag_in(words, 'C'));
  }
  static std::string tag_in(const std::vector<std::string>& words) {
    return " O" + flag_in(words, 'O');
  }
  static std::string classic(const std::string& code) {
    static const std::map<std::string, std::string> kWords{
        {"HD", "STORED"}, {"NS", "NOT_STORED"}, {"EX", "EXISTS"}, {"NF", "NOT_FOUND"}};
    return kWords.at(code) + "\r\n";
  }

  std::string judge(const std::string& key, bool is_add, std::uint64_t number) const {
    if (honors_ == Honors::nothing) return "HD";
    const auto found = items_.find(key);
    if (is_add) return found == items_.end() ? "HD" : "NS";
    if (found == items_.end()) return "NF";
    return found->second.number == number ? "HD" : "EX";
  }
  std::string store(const std::string& key, const std::string& value, bool is_add,
                    std::uint64_t number, const std::string& exptime) {
    auto code = judge(key, is_add, number);
    if (code != "HD") return code;
    items_[key] = {value, ++last_};
    // A date long past.
    if (std::stoll(exptime) > 2'592'000) items_.erase(key);
    return code;
  }
  std::string read(const std::vector<std::string>& words) const {
    std::string all;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto found = items_.find(words[i]);
      if (found == items_.end()) continue;
      const auto& item = found->second;
      all += fmt::format("VALUE {} 0 {} {}\r\n{}\r\n", words[i], item.value.size(), item.number,
                         item.value);
    }
    return all + "END\r\n";
  }

  const Honors honors_;
  std::mutex mutex_;
  std::map<std::string, Item> items_;
  std::uint64_t last_ = 0;
};

}  // namespace dlock::hostile
