// SPDX-License-Identifier: Apache-2.0
//
// Lock names and what each backend makes of them. Input: a key template, and two names, a line
// each.
#include <set>

#include "backends/local/rules/names.hpp"
#include "backends/memcached/rules/names.hpp"
#include "backends/memcached/rules/placement.hpp"
#include "backends/redis/rules/names.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "backends/zookeeper/rules/names.hpp"
#include "dlock/spi/name.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

void check_escapes(std::string_view text) {
  const auto letters = [](unsigned char c) { return c >= 'a' && c <= 'z'; };
  const auto escaped = percent_escape(text, letters);
  require(percent_unescape(escaped) == text, "unescape undoes escape");
  require(escaped.size() <= 3 * text.size(), "an escape has three bytes");
  require(percent_unescape(text).size() <= text.size(), "unescaping does not grow");
}

void check_valid(const std::string& name) {
  require(!name.empty() && name.size() <= 512, "a name has 1 to 512 bytes");
  std::string joined;
  for (const auto part : split_name(name)) {
    require(!part.empty() && part != "." && part != "..", "no part is empty, . or ..");
    joined.append(joined.empty() ? "" : "/").append(part);
  }
  require(joined == name, "the parts make the name");
  for (const char c : name) require(c != '\n' && c != '\0' && c != '\x1b', "no control byte");

  const auto file = local::file_name(name);
  require(file.size() <= 255 && file.find('/') == file.npos, "a file name is one");
  require(local::is_lock_file_name(file), "our own file is known by its name");
  const auto from_file = local::lock_name(file);
  require(!from_file || *from_file == name, "the file's name leads back to the lock's");
}

std::set<std::string> redis_keys(const redis::KeyMap& map, const std::string& name) {
  auto keys = map.keys(name);
  require(map.name(keys.lock) == name, "redis: the key leads back to the name");
  std::set<std::string> all{keys.lock, keys.fence, keys.queue, keys.alive, keys.next, keys.broken};
  require(all.size() == 6, "redis: the keys of a lock are six");
  return all;
}

std::set<std::string> memcached_keys(const memcached::KeyMap& map, const std::string& name) {
  std::set<std::string> all{map.lock_key(name), map.token_key(name), map.canary_key()};
  require(all.size() == 3, "memcached: lock, counter and canary are three keys");
  for (const auto& key : all) {
    require(key.size() <= memcached::kLongestKey, "memcached: a key has 250 bytes at most");
    for (const char c : key) {
      require(static_cast<unsigned char>(c) > 0x20 && c != 0x7F, "memcached: no blank in a key");
    }
  }
  require(memcached::server_of(name, 7) < 7, "memcached: one of the servers");
  all.erase(map.canary_key());
  return all;
}

std::string zookeeper_path(const zookeeper::NameMap& map, const std::string& name) {
  auto path = map.path(name);
  require(zookeeper::path_error(path).empty(), "zookeeper: the server takes the path");
  require(map.name(path) == name, "zookeeper: the path leads back to the name");
  for (const auto part : split_name(std::string_view(path).substr(1))) {
    require(!zookeeper::parse_contender(part), "zookeeper: no lock's node is a contender's");
  }
  return path;
}

void check_apart(const std::set<std::string>& a, const std::set<std::string>& b, const char* what) {
  for (const auto& key : a) require(b.count(key) == 0, what);
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  auto text = as_text(data, size);
  check_escapes(text);
  const auto key_template = take_until(text, '\n');
  const std::string a(take_until(text, '\n'));
  const std::string b(take_until(text, '\n'));

  // What others may have left in the store.
  if (const auto name = local::lock_name(a)) require(local::file_name(*name) == a, "a file is one");
  const zookeeper::NameMap nodes("", a.size() % 2 == 0 ? "/app" : "");
  if (const auto name = nodes.name(b)) require(nodes.path(*name) == b, "a path is one");

  const bool valid_a = name_error(a).empty();
  const bool valid_b = name_error(b).empty();
  if (valid_a) check_valid(a);
  if (!valid_a || !valid_b || a == b) return 0;
  require(local::file_name(a) != local::file_name(b), "local: two names, two files");
  require(zookeeper_path(nodes, a) != zookeeper_path(nodes, b), "zookeeper: two names, two nodes");
  const redis::KeyMap hashes(redis::template_error(key_template).empty() ? key_template
                                                                         : "dlock:{{name}}");
  check_apart(redis_keys(hashes, a), redis_keys(hashes, b), "redis: two names share no key");
  const memcached::KeyMap items(
      memcached::key_template_error(key_template).empty() ? key_template : "dlock:{name}");
  check_apart(memcached_keys(items, a), memcached_keys(items, b),
              "memcached: two names share no key");
  return 0;
}
