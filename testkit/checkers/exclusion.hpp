// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// Somebody was granted a name while an earlier holder believed that it holds it, and not both of
/// them as readers.
struct Overlap {
  GrantId earlier = 0;
  GrantId later = 0;
  TimePoint at;
};
/// Every one of them; what makes no sense in the history goes to `broken`.
std::vector<Overlap> overlaps_of(const History& history, Violations& broken);

/// The first promise: when a name is granted, nobody else believes that it holds it. An earlier
/// holder must have called release(), been told that the lock is lost, or be past its local
/// deadline; or both are readers. A history that makes no sense is a violation, too.
Violations check_exclusion(const History& history);

/// Tokens of a name rise strictly from grant to grant, in the order of the grants, but for readers,
/// which are told in any order: theirs are above all writers' before them. And a name that has
/// tokens has one on every grant.
Violations check_tokens(const History& history);

/// Nothing is told twice, nothing is told lost that was given back, lost is final.
Violations check_telling(const History& history);

}  // namespace dlock::checkers
