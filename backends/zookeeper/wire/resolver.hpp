// SPDX-License-Identifier: Apache-2.0
//
// Host names to the numeric list that libzookeeper gets. Left to the library, each step would
// resolve them again and block the loop.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/spi/env.hpp"
#include "dlock/spi/net/host_lookup.hpp"
#include "dlock/spi/options.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

struct Resolved {
  /// `1.2.3.4:2181,::1:2181`, in the order of the endpoints, without the names that were not
  /// resolved.
  std::string addresses;
  /// Names were left out because the system had no thread to look them up on.
  bool no_thread = false;
  /// Names were left out because no name server answered in time.
  bool no_answer = false;

  bool is_partial() const noexcept { return no_thread || no_answer; }
};

/// Both lists, without repetitions.
std::string united(std::string_view addresses, std::string_view more);

/// One lookup of all endpoints. Loop only.
class Resolver final : public std::enable_shared_from_this<Resolver> {
 public:
  Resolver(Env& env, std::vector<Endpoint> endpoints);

  /// Waits until `deadline` for the first address, and a moment more for those of the other
  /// endpoints. Once.
  asio::awaitable<Resolved> run(TimePoint deadline);
  /// Ends run() soon.
  void stop() noexcept;

 private:
  bool has_ended(std::size_t index) const {
    return !lookups_[index] || lookups_[index]->has_ended();
  }
  bool is_known(std::size_t index) const {
    return !lookups_[index] || (lookups_[index]->has_ended() && lookups_[index]->error().empty());
  }
  Resolved result() const;

  Env& env_;
  const std::vector<Endpoint> endpoints_;
  std::vector<std::shared_ptr<const HostLookup>> lookups_;  ///< per endpoint; null: it is numeric
  Signal event_;
  bool stopped_ = false;
};

/// True if no name has to be looked up.
bool all_numeric(const std::vector<Endpoint>& endpoints);

}  // namespace dlock::zookeeper
