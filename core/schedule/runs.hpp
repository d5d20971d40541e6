// SPDX-License-Identifier: Apache-2.0
//
// The notes of runs in their store, for callers that wait.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/manager/engine.hpp"
#include "dlock/schedule.hpp"

namespace dlock::core {

class Runs {
 public:
  /// Throws LockError{invalid_name, config_invalid, not_supported}.
  Runs(std::shared_ptr<Engine> engine, std::string name);

  const std::string& name() const noexcept { return name_; }
  const std::string& store() const noexcept { return store_; }

  struct Seen {
    std::string text;  ///< empty: no note
    std::optional<RunRecord> last;
    std::chrono::milliseconds now{0};
    Owner me;  ///< as claims of this process name it
  };
  /// The store's time is asked after the note. Throws LockError.
  Seen look();
  /// Asks no time. Throws LockError.
  std::optional<RunRecord> last();

  /// A compare-and-set. Returns false if another text is stored. After a late answer it reads the
  /// note until the outcome is known. Throws LockError.
  bool replace(const std::string& from, const std::string& to);

 private:
  enum class Written { yes, no, unknown };
  std::optional<RunRecord> parsed(const std::string& text) const;
  Written try_replace(const std::string& from, const std::string& to);

  const std::shared_ptr<Engine> engine_;
  const std::string name_;
  const std::string key_;
  const std::string store_;
};

}  // namespace dlock::core
