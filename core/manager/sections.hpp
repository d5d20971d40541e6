// SPDX-License-Identifier: Apache-2.0
//
// The configuration's sections, and what a section is on a manager's stores.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dlock/config.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/lock_manager.hpp"

namespace dlock::core {
class Engine;

/// Immutable.
class Sections {
 public:
  explicit Sections(const std::vector<SectionConfig>& all);

  /// Null: there is none of that name.
  const Section* find(const std::string& name) const;
  /// Throws LockError{config_invalid}, with the place: one that says two things, a lock that no
  /// route matches, a kind that its store does not have. No I/O.
  void check(const Engine& engine) const;

 private:
  struct Entry {
    Section section;
    Origin origin;
  };
  std::map<std::string, Entry> all_;
};

/// The configuration's of that name; else the lock of that name.
Section section_named(LockManager& manager, std::string name);

/// Its lock. Throws LockError{invalid_argument, invalid_name, config_invalid}. No I/O.
std::shared_ptr<DistributedLock> lock_of(LockManager& manager, const Section& section);

}  // namespace dlock::core
