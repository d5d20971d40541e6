// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/options.hpp"

#include <fmt/format.h>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/rules/names.hpp"
#include "backends/zookeeper/wire/library_client.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/zookeeper.hpp"

namespace dlock::zookeeper {
namespace {

std::unique_ptr<Backend> create(const StoreOptions& options, Env& env, EventSink& sink) {
  check_options(options);
  return std::make_unique<ZooKeeperBackend>(options, env, sink, c_library());
}

constexpr std::string_view kNoTls =
    "Debian's ZooKeeper C client is built without TLS: use zookeeper:// through a tunnel or a "
    "TLS proxy on this machine";

}  // namespace

std::vector<OptionSpec> option_specs() {
  using Kind = OptionSpec::Kind;
  std::vector<OptionSpec> specs;
  specs.push_back({.name = "session_timeout",
                   .kind = Kind::duration,
                   .default_value = "10s",
                   .min = 300,
                   .max = 60'000,
                   .choices = {},
                   .help = "how long the servers keep a silent client's locks; three of their "
                           "ticks at least"});
  specs.push_back({.name = "chroot",
                   .kind = Kind::text,
                   .default_value = {},
                   .choices = {},
                   .help = "a node that must exist, below which the URL's path starts"});
  specs.push_back(
      {.name = "acl",
       .kind = Kind::choice,
       .default_value = "open",
       .choices = "open|creator",
       .help = "clients that may change dlock's nodes: all, or those with the same login"});
  specs.push_back({.name = "exclusive_node",
                   .kind = Kind::choice,
                   .default_value = "lock",
                   .choices = "lock|write",
                   .help =
                       "what an exclusive lock's node is to Curator: of its InterProcessMutex, or "
                       "a writer's of its InterProcessReadWriteLock"});
  specs.push_back(cache_option());
  specs.push_back(max_queue_option());
  return specs;
}

void check_options(const StoreOptions& options) {
  if (options.endpoints.empty()) {
    refuse_option(options, {},
                  "a ZooKeeper URL names its servers: zookeeper://host1,host2,host3/root");
  }
  if (const auto error = path_error(options.path); !error.empty()) {
    refuse_option(options, {},
                  fmt::format("the path '{}' cannot be the root: {}", options.path, error));
  }
  if (options.given("chroot")) {
    const auto& chroot = options.string("chroot");
    if (const auto error = path_error(chroot); !error.empty() || chroot.empty()) {
      refuse_option(options, "chroot", fmt::format("chroot '{}': {}", chroot, error));
    }
  }
  if (options.string("acl") == "creator" && options.username.empty()) {
    refuse_option(options, "acl",
                  "acl=creator needs a login: write zookeeper://user:password@host, or acl=open");
  }
}

const BackendDescriptor& backend() {
  static const BackendDescriptor descriptor{
      .name = "zookeeper",
      .schemes = {"zookeeper", "zk"},
      .address = BackendDescriptor::Address::hosts,
      .default_port = 2181,
      .options = option_specs(),
      .lease_option = "session_timeout",
      .refused_schemes = {{"zk+tls", kNoTls}, {"zookeeper+tls", kNoTls}},
      .create = &create,
      .has_shared_mode = true,
      .has_permits = true,
      .why_no_adoption =
          "a claim is an ephemeral node, which belongs permanently to its process's session: "
          "another session can only create another node, and the lock would be free in between",
  };
  return descriptor;
}

}  // namespace dlock::zookeeper
