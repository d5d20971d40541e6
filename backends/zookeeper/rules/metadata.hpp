// SPDX-License-Identifier: Apache-2.0
//
// What we write into a contender's node: who it is, for people. Lines of `key=value`, so that a
// plain `get` shows it; other clients ignore it, and theirs may hold anything. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::zookeeper {

struct Metadata {
  Owner owner;
  std::chrono::milliseconds session_timeout{0};
  /// Of a reader's node that a writer's became: the czxid of that one. 0: not said.
  std::int64_t born = 0;
  std::uint32_t permits = 0;  ///< of a semaphore, that it has or waits for. 0: not said
};

std::string write_metadata(const Metadata& metadata);
/// Empty for data that we did not write.
std::optional<Metadata> read_metadata(std::string_view data);

}  // namespace dlock::zookeeper
