// SPDX-License-Identifier: Apache-2.0
//
// Tap: stands between the core and a production backend. Knows which SPI calls of a process are
// under way, chooses at the beginning of each whether a fault shall strike it, and counts what
// struck which call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "dlock/spi/backend.hpp"
#include "tests/simulation/fault.hpp"
#include "tests/simulation/process.hpp"

namespace dlock::simulation {

enum class Call : std::uint8_t {
  connect,
  claim,
  wait,
  extend,
  release,
  inspect,
  list,
  evict,
  downgrade,
  offer
};
inline constexpr std::size_t kCalls = 10;
inline constexpr std::array<std::string_view, kCalls> kCallNames = {
    "connect", "claim", "wait",  "extend",    "release",
    "inspect", "list",  "evict", "downgrade", "offer"};

/// How often each fault struck each call.
struct FaultTable {
  std::array<std::array<std::uint64_t, kFaults>, kCalls> struck{};
  std::array<std::uint64_t, kCalls> called{};

  void count(const std::array<int, kCalls>& under_way, Fault fault) noexcept {
    for (std::size_t call = 0; call < kCalls; ++call) {
      if (under_way.at(call) > 0) ++struck.at(call).at(static_cast<std::size_t>(fault));
    }
  }
  void add(const FaultTable& other) noexcept {
    for (std::size_t call = 0; call < kCalls; ++call) {
      called.at(call) += other.called.at(call);
      for (std::size_t fault = 0; fault < kFaults; ++fault) {
        struck.at(call).at(fault) += other.struck.at(call).at(fault);
      }
    }
  }
};

/// A fault that strikes right before a call is carried out, or between that and the moment at which
/// the core learns the answer. (What strikes in between is made to by other means.)
struct Blow {
  enum class When { none, before, after };
  When when = When::none;
  std::function<void()> strike = {};
};

/// The calls of one process that are under way.
struct Calls {
  std::array<int, kCalls> under_way{};
  /// Every claim that was made, by its owner id. The core keeps one alive as long as it takes care
  /// of what it may have in the store.
  std::map<std::string, std::weak_ptr<Claim>> claims;
  /// Called when a renewal was answered: gone.
  std::function<void(const std::string& owner_id)> on_gone = [](const std::string&) {};
  /// Called at the beginning of each.
  std::function<Blow(Call, const std::string& lock)> on_begin = [](Call, const std::string&) {
    return Blow();
  };
};

/// `env` and `calls` outlive it.
std::unique_ptr<Backend> tap(std::unique_ptr<Backend> backend, Env& env, Calls& calls);

}  // namespace dlock::simulation
