// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/stores.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace dlock::fleet {

Stores::Stores() {
  zookeeper_.start();
  redis_.start();
  for (const auto& leg : legs()) {
    write(leg.plan, fmt::format("migrate: {{ from: {}, to: {}, plan: {}, poll: {}ms }}", leg.from,
                                leg.to, leg.plan, kPoll.count()));
  }
  write("home", "store: " + legs().back().to);
}

const std::vector<Leg>& Stores::legs() {
  static const std::vector<Leg> all{{"zk", "redis", "to-redis"},
                                    {"redis", "zk", "back-to-zk"},
                                    {"zk", "disk", "to-disk"},
                                    {"disk", "zk", "home-to-zk"}};
  return all;
}

std::string Stores::url(const std::string& store) const {
  if (store == "zk") {
    return fmt::format("zookeeper://127.0.0.1:{}/first?session_timeout={}ms&require=exclusive",
                       zookeeper_.port(), kLease.count());
  }
  if (store == "disk") return "file://" + (folder_ / "locks").string() + "?require=exclusive";
  if (store != "redis") throw std::invalid_argument("no store " + store);
  return fmt::format("redis://127.0.0.1:{}/0?lease={}ms&request_timeout=500ms&require=exclusive",
                     redis_.port(), kLease.count());
}

std::string Stores::zookeeper_hosts() const {
  return fmt::format("127.0.0.1:{}", zookeeper_.port());
}

void Stores::write(const std::string& name, const std::string& route) const {
  std::string text = "stores:\n";
  for (const auto* store : {"zk", "redis", "disk"}) {
    text += fmt::format("  {}: {{ url: \"{}\" }}\n", store, url(store));
  }
  testkit::write_file(file(name), text + "locks:\n  - { match: \"**\", " + route + " }\n");
}

void Stores::forget_in_redis(const std::vector<std::string>& names, const std::string& plan) const {
  std::string command = fmt::format("DEL dlock:{{gate/{}}}%note", plan);
  for (const auto& name : names) command += fmt::format(" dlock:{{{}}}", name);
  testkit::ask(redis_.port(), command + "\r\nQUIT\r\n", "+OK\r\n", testkit::patience());
}

}  // namespace dlock::fleet
