// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/leftovers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace dlock::checkers {

Violations check_leftovers(const Belongings& before, const Belongings& after, TimePoint at,
                           const std::set<std::string>& permitted) {
  Violations found;
  const auto compare = [&](const char* kind, const std::multiset<std::string>& was,
                           const std::multiset<std::string>& is) {
    std::vector<std::string> left;
    std::set_difference(is.begin(), is.end(), was.begin(), was.end(), std::back_inserter(left));
    for (const auto& one : left) {
      if (!permitted.contains(one)) found.push_back({fmt::format("left: {} '{}'", kind, one), at});
    }
  };
  compare("key", before.keys, after.keys);
  compare("watch", before.watches, after.watches);
  compare("descriptor", before.descriptors, after.descriptors);
  if (after.threads > before.threads) {
    found.push_back({fmt::format("left: {} threads", after.threads - before.threads), at});
  }
  return found;
}

}  // namespace dlock::checkers
