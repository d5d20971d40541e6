// SPDX-License-Identifier: Apache-2.0
//
// How a plan in mode dual stands, for `dlock migrate status`: the window, who is behind, who locks
// without being registered, what is alarming, what comes next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/dual/dual_steps.hpp"
#include "migration/dual/window_note.hpp"
#include "migration/stranger.hpp"

namespace dlock::core::migration {

/// `somebody (pid 4711 on host) holds 'a' in 's'`
std::string describe(const Stranger& stranger);

/// Claims of these programs are no strangers'.
using KnownPrograms = std::vector<std::string>;
KnownPrograms known_programs(const Window& window);

struct StrangersFound {
  Failure failure;  ///< the store could not be asked
  std::vector<Stranger> strangers;
  /// The store cannot list its locks: only the plan's exact names were looked at.
  bool unlisted = false;
};
/// Loop only. Looks at the plan's names in that store, and at all its locks that match the plan's
/// patterns.
asio::awaitable<StrangersFound> strangers_in(std::shared_ptr<Store> store, Plan plan,
                                             KnownPrograms known);

struct DualStatus {
  Plan plan;
  std::optional<Window> window;  ///< empty: lost, or it could not be read (see alarms)
  bool finished = false;
  std::vector<Program> laggards;    ///< whose phase is closed
  std::vector<Stranger> strangers;  ///< in the stores where they matter now
  std::vector<std::string> alarms;
  std::string next;  ///< what comes next, and what it waits for
};
/// Loop only. A store that cannot be asked is an alarm.
asio::awaitable<DualStatus> dual_survey(DualStores stores, Plan plan);

/// Pure.
std::string next_step(const DualStatus& status);

/// Loop only. Why names cannot be moved in mode dual, each sentence with its name: a record of a
/// plan in mode move stands in their place, in one of the stores. A failure if one cannot be asked.
asio::awaitable<Result<std::vector<std::string>>> sealed_places(DualStores stores,
                                                                std::vector<std::string> names);

/// Loop only. The highest token that the stores can tell of: each of the plan's names is locked for
/// a moment, or its holder's token is read; so is that of every held lock that a pattern matches.
asio::awaitable<Result<std::uint64_t>> highest_token(DualStores stores, Plan plan);

}  // namespace dlock::core::migration
