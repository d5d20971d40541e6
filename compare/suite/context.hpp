// SPDX-License-Identifier: Apache-2.0
//
// What every part of a run needs.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "compare/suite/interrupt.hpp"
#include "compare/suite/options.hpp"
#include "compare/suite/progress.hpp"

namespace dlock::compare {

struct Context {
  const Options& options;
  const Interrupt& interrupt;
  Progress& progress;
  std::filesystem::path folder;

  /// Adds one result to the raw data. Any thread.
  void add(boost::json::object result) {
    const std::scoped_lock guard(mutex);
    results.push_back(std::move(result));
  }

  std::mutex mutex{};
  boost::json::array results{};
};

}  // namespace dlock::compare
