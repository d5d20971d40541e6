// SPDX-License-Identifier: Apache-2.0
//
// Promises: what servers have granted, and until when, as seen from outside. When a fault has
// changed the data it says which of them are broken: a holder is in its lease and cannot know.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/world.hpp"

namespace dlock::simulation::redis {

class Promises {
 public:
  /// A lock as a server has it: whose, and the world's moment when it expires.
  struct Holder {
    std::string owner_id;
    TimePoint until;
    bool marked = false;  ///< An operator breaks it: its time does not change any more.
  };

  /// A client has taken or renewed it.
  void made(const std::string& lock, const Holder& holder);
  /// The holders of the lock that are not in `left` although their time is not over.
  std::vector<std::string> ended_early(const std::string& lock, const std::vector<Holder>& left,
                                       TimePoint now) const;
  /// Clients have changed it such that these are the only holders left: the others' promises are
  /// over by their own doing.
  void settled(const std::string& lock, const std::vector<Holder>& left);

  struct Audit {
    std::vector<std::pair<std::string, std::string>> broken;  ///< lock and owner id
    /// The store has some for a shorter time than it has promised: when to look again.
    std::optional<TimePoint> again;
  };
  using LookUp = std::function<std::vector<Holder>(const std::string& lock)>;
  /// What is broken is forgotten.
  Audit audit(TimePoint now, const LookUp& look_up);

 private:
  std::map<std::pair<std::string, std::string>, TimePoint> all_;  ///< by lock and owner id
};

}  // namespace dlock::simulation::redis
