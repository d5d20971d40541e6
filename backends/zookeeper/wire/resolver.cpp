// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/resolver.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "backends/zookeeper/wire/address.hpp"

namespace dlock::zookeeper {
namespace {

/// How long the names that are still unknown are waited for once an address is known.
constexpr std::chrono::milliseconds kForTheOthers{250};

bool is_numeric(const std::string& host) {
  boost::system::error_code ec;
  asio::ip::make_address(host, ec);
  return !ec;
}

}  // namespace

std::string united(std::string_view addresses, std::string_view more) {
  std::vector<std::string_view> all;
  for (auto rest : {addresses, more}) {
    while (!rest.empty()) {
      const auto one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  return fmt::format("{}", fmt::join(all, ","));
}

bool all_numeric(const std::vector<Endpoint>& endpoints) {
  return std::all_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return is_numeric(endpoint.host); });
}

Resolver::Resolver(Env& env, std::vector<Endpoint> endpoints)
    : env_(env), endpoints_(std::move(endpoints)), event_(env) {}

void Resolver::stop() noexcept {
  stopped_ = true;
  event_.notify();
}

asio::awaitable<Resolved> Resolver::run(TimePoint deadline) {
  const auto self = shared_from_this();
  lookups_.resize(endpoints_.size());
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    if (is_numeric(endpoints_[i].host)) continue;
    Job told = [weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->event_.notify();
    };
    lookups_[i] = HostLookup::start(env_, endpoints_[i], std::move(told));
  }
  auto until = kNever;
  bool in_time = true;
  while (in_time && !stopped_) {
    bool all_ended = true;
    bool any_known = false;
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      all_ended = all_ended && has_ended(i);
      any_known = any_known || is_known(i);
    }
    if (all_ended) break;
    if (any_known && until == kNever) until = env_.now() + kForTheOthers;
    in_time = co_await event_.wait_until(std::min(until, deadline));
  }
  co_return result();
}

Resolved Resolver::result() const {
  Resolved resolved;
  const auto add = [&resolved](std::string_view address) {
    resolved.addresses = united(resolved.addresses, address);
  };
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    if (!lookups_[i]) {
      add(fmt::format("{}:{}", endpoints_[i].host, endpoints_[i].port));
    } else if (!lookups_[i]->has_ended()) {
      (lookups_[i]->has_begun() ? resolved.no_answer : resolved.no_thread) = true;
    } else {
      for (const auto& found : lookups_[i]->endpoints()) add(text_of(found));
    }
  }
  return resolved;
}

}  // namespace dlock::zookeeper
