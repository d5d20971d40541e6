// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// What there is in a store and in a process at one moment. Sets by name, so that a complaint can
/// say what was left.
struct Belongings {
  std::multiset<std::string> keys;         ///< keys of a store, nodes of a tree, files of a folder
  std::multiset<std::string> watches;      ///< watches and subscriptions, at the server
  std::multiset<std::string> descriptors;  ///< what each open descriptor of the process leads to
  std::size_t threads = 0;
};

/// Nothing may be there `after` that was not there `before`. `permitted` names keys that outlive
/// their lock by design (a token's counter, a container that is reaped later), as exact names.
Violations check_leftovers(const Belongings& before, const Belongings& after, TimePoint at,
                           const std::set<std::string>& permitted = {});

}  // namespace dlock::checkers
