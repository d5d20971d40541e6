// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/resolver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>

#include "dlock/spi/thread.hpp"

#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {
namespace {

using asio::ip::tcp;

bool is_numeric(const std::string& host) {
  boost::system::error_code ec;
  asio::ip::make_address(host, ec);
  return !ec;
}

// Shared with the look-ups under way, which may outlive the coroutine's patience.
struct Lookups {
  explicit Lookups(Env& env) : done(env) {}

  void finish_one() {
    if (--missing == 0) done.set(true);
  }

  std::optional<tcp::resolver> resolver;  ///< brings a thread along: only when a name needs it
  OneShot<bool> done;
  std::vector<std::vector<std::string>> found;  ///< per endpoint
  std::size_t missing = 0;
  bool no_thread = false;
};

void look_up(const std::shared_ptr<Lookups>& lookups, std::size_t index, const Endpoint& endpoint) {
  lookups->resolver->async_resolve(
      endpoint.host, std::to_string(endpoint.port),
      [lookups, index](const boost::system::error_code& ec,
                       const tcp::resolver::results_type& results) {
        if (!ec) {
          for (const auto& result : results) {
            const auto address = result.endpoint();
            lookups->found[index].push_back(
                fmt::format("{}:{}", address.address().to_string(), address.port()));
          }
        }
        lookups->finish_one();
      });
}

}  // namespace

bool all_numeric(const std::vector<Endpoint>& endpoints) {
  return std::all_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return is_numeric(endpoint.host); });
}

asio::awaitable<Resolved> resolve(Env& env, std::vector<Endpoint> endpoints, TimePoint deadline) {
  auto lookups = std::make_shared<Lookups>(env);
  lookups->found.resize(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto& endpoint = endpoints[i];
    if (is_numeric(endpoint.host)) {
      lookups->found[i].push_back(fmt::format("{}:{}", endpoint.host, endpoint.port));
      continue;
    }
    if (!lookups->resolver) lookups->resolver.emplace(env.executor());
    ++lookups->missing;
    try {
      const BlockedSignals blocked;  // also in the thread that the first look-up starts
      look_up(lookups, i, endpoint);
    } catch (const boost::system::system_error&) {
      lookups->no_thread = true;
      lookups->finish_one();
    }
  }
  if (lookups->missing > 0) {
    co_await lookups->done.get_until(deadline);
    lookups->resolver->cancel();
  }
  std::vector<std::string> addresses;
  for (const auto& some : lookups->found) {
    for (const auto& address : some) {
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
        addresses.push_back(address);
      }
    }
  }
  Resolved resolved;
  resolved.addresses = fmt::format("{}", fmt::join(addresses, ","));
  resolved.no_thread = lookups->no_thread;
  co_return resolved;
}

}  // namespace dlock::zookeeper
