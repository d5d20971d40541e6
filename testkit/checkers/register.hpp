// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// One write to a resource that looks at fencing tokens, as the resource saw it.
struct Write {
  TimePoint at;
  GrantId grant = 0;
  std::uint64_t token = 0;
  bool accepted = false;
};

/// What fencing is for: once a token was seen, no lower one is accepted; and none that is as high
/// as the highest is refused. Two grants never write with the same token.
Violations check_register(const std::vector<Write>& writes);

}  // namespace dlock::checkers
