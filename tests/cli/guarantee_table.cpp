// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/guarantee_table.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "dlock/duration.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::cli_test {
namespace {

using testkit::RunningStore;

/// A row of the table: a store, and how its server is set.
struct Subject {
  const char* title;
  const char* backend;
  const char* address;  ///< of the URL, as people write it
  RunningStore (*start)();
};

template <class Server>
RunningStore started_with(std::string_view backend, std::vector<std::string> settings) {
  const auto server = std::make_shared<Server>(std::move(settings));
  server->start();
  return {std::string(backend), server->url(), server};
}

// In the README's order.
const Subject kSubjects[] = {
    {"ZooKeeper", "zookeeper", "h1,h2,h3/root", [] { return testkit::start_store("zookeeper"); }},
    {"local", "local", "/dir", [] { return testkit::start_store("local"); }},
    {"Redis with `appendonly yes`, `appendfsync always`", "redis", "h/0",
     [] {
       return started_with<testkit::RedisServer>(
           "redis", {"--appendonly", "yes", "--appendfsync", "always"});
     }},
    {"Redis as installed", "redis", "h/0", [] { return testkit::start_store("redis"); }},
    {"Memcached with `-M`", "memcached", "h1,h2",
     [] { return started_with<testkit::MemcachedServer>("memcached", {"-M"}); }},
    {"memory, for tests", "memory", "name",
     [] {
       return RunningStore{"memory", "memory://x", {}};
     }},
};

const BackendDescriptor* find_built(std::string_view name) {
  for (const auto* backend : OpenOptions::built_in().backends) {
    if (backend->name == name) return backend;
  }
  return nullptr;
}

Capabilities declared(const RunningStore& store) {
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  auto locks = LockManager::open(store.url, std::move(options));
  const auto report = locks.inspect().at(0);
  if (!report.capabilities) {
    throw std::runtime_error(fmt::format("{}: {}", store.backend, report.message));
  }
  return *report.capabilities;
}

std::string blocks_for(const Capabilities& all) {
  const auto lease = format_duration(all.lease);
  switch (all.lease_scope) {
    case LeaseScope::claim:
      return fmt::format("its lease, {}", lease);
    case LeaseScope::session:
      return fmt::format("its session, {}", lease);
    case LeaseScope::none:
      break;
  }
  return "not at all";
}

std::string names_of(const std::vector<Capabilities::Assumption>& assumptions) {
  std::string names;
  for (const auto& assumption : assumptions) {
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", assumption.name);
  }
  return names;
}

std::string line_of(const Subject& subject, const BackendDescriptor& backend,
                    const Capabilities& all) {
  return fmt::format("| {} | `{}://{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                     subject.title, backend.schemes.front(), subject.address,
                     to_string(all.guarantee), names_of(all.assumptions),
                     all.shared_mode ? "yes" : "no", all.permits ? "yes" : "no",
                     all.can_adopt ? "yes" : "no", all.fair ? "first come" : "none",
                     to_string(all.token), blocks_for(all), to_string(all.wake_up));
}

}  // namespace

std::vector<GuaranteeRow> guarantee_rows() {
  std::vector<GuaranteeRow> rows;
  for (const auto& subject : kSubjects) {
    GuaranteeRow row{subject.title, subject.backend, {}};
    if (const auto* backend = find_built(subject.backend)) {
      const auto store = subject.start();
      row.line = line_of(subject, *backend, declared(store));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string guarantee_table(const std::vector<GuaranteeRow>& rows) {
  std::string table =
      "| store | URL | guarantee | assuming | shared mode | semaphores | export and "
      "adopt | order | fencing token | a dead holder blocks for | waiters learn by |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& row : rows) table += row.line;
  return table;
}

std::string table_of(const std::string& readme) {
  const auto begin = readme.find(kGuaranteesBegin);
  const auto end = readme.find(kGuaranteesEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    throw std::runtime_error("the README has lost the lines around its table of guarantees");
  }
  const auto start = begin + std::string_view(kGuaranteesBegin).size();
  return readme.substr(start, end - start);
}

}  // namespace dlock::cli_test
