// SPDX-License-Identifier: Apache-2.0
//
// Side: a store that the programs of a run use, and their network to it. Most runs have one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

struct Side {
  /// `prefix`: before the names of its locks, for the observer; empty where it is the only store.
  Side(World& world, const Kind& kind, bool exclusive, std::string with_prefix)
      : network(world),
        store(kind.make(world, network, exclusive)),
        prefix(std::move(with_prefix)),
        faults(store->faults()) {
    for (const auto fault :
         {Fault::client_paused, Fault::client_crashed, Fault::client_clock_jump}) {
      faults.push_back(fault);
    }
    if (store->has_network()) faults.push_back(Fault::client_cut);
  }

  bool has(const std::string& lock) const { return lock.starts_with(prefix); }
  /// As the store knows it.
  std::string name_of(const std::string& lock) const { return lock.substr(prefix.size()); }

  Network network;
  std::unique_ptr<SimStore> store;
  std::string prefix;
  std::vector<Fault> faults;  ///< that can strike it in this run
};

}  // namespace dlock::simulation
