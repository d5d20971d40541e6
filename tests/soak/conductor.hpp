// SPDX-License-Identifier: Apache-2.0
//
// Runs a soak: workers in processes, a fault every few seconds, each followed by a heal after which
// every worker must get on.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "tests/soak/records.hpp"
#include "tests/soak/store.hpp"

namespace dlock::soak {

inline constexpr std::size_t kWorkers = 4;

struct SoakOptions {
  std::string program;  ///< ourselves, to run workers
  std::string store;
  std::chrono::seconds duration{60};
  unsigned seed = 1;
  int names = 5;
  std::string only;  ///< this kind of fault; empty: all
};

Records run_soak(const SoakOptions& options, SoakStore& store, const Terms& terms);

/// What the store itself promises, by the word of its own backend.
Terms terms_of(SoakStore& store);

}  // namespace dlock::soak
