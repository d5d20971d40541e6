// SPDX-License-Identifier: Apache-2.0
//
// Mail: exported grants on their way from one simulated program to others. Some are given to
// several, some late, some to nobody. Notices a grant that was adopted twice, and one that somebody
// else had in between though the store had forgotten nothing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"
#include "tests/simulation/recorder.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

struct Letter {
  std::string lock;
  std::string text;
  std::uint64_t token = 0;  ///< of the exporter
  TimePoint posted{};       ///< when it was
  int adopted = 0;
};
using LetterPtr = std::shared_ptr<Letter>;

class Mail {
 public:
  explicit Mail(World& world) : world_(world) {}

  void post(Letter letter) {
    letter.posted = world_.now();
    letters_.push_back(std::make_shared<Letter>(std::move(letter)));
  }
  /// Null: there is none.
  LetterPtr take() {
    if (letters_.empty()) return nullptr;
    const auto place =
        letters_.begin() + static_cast<std::ptrdiff_t>(world_.below(letters_.size()));
    const auto letter = *place;
    if (letters_.size() > 8 || world_.chance(0.6)) letters_.erase(place);
    return letter;
  }

  /// A program was told that it has the lock, by `letter` or by itself (null).
  void granted(const std::string& lock, std::uint64_t token, const std::string& owner_id,
               const LetterPtr& letter) {
    granted_[lock].emplace(token, Grant{owner_id, world_.now()});
    if (!letter) return;
    if (++letter->adopted > 1) wrong(fmt::format("'{}' was adopted twice", lock), world_.now());
    adoptions_.push_back({lock, letter->token, token, letter->posted, world_.now()});
  }

  std::uint64_t adoptions() const noexcept { return adoptions_.size(); }
  checkers::Violations judge(const std::vector<Forgotten>& forgotten) {
    for (const auto& one : adoptions_) {
      if (one.adopted <= one.exported) continue;  // a token that does not rise is told as such
      const auto& granted = granted_[one.lock];
      const auto end = granted.lower_bound(one.adopted);
      const auto between =
          std::find_if(granted.upper_bound(one.exported), end, [&one](const auto& grant) {
            return grant.second.at >= one.from && grant.second.at <= one.to;
          });
      if (between == end) continue;
      const auto& owner_id = between->second.owner_id;
      const bool excused = std::any_of(forgotten.begin(), forgotten.end(), [&](const auto& what) {
        if (what.lock != one.lock || what.at > one.to) return false;
        return what.by >= one.from || what.owner_id == owner_id;
      });
      if (excused) continue;
      wrong(fmt::format("'{}' was exported with token {} and adopted with {}, and somebody had {}",
                        one.lock, one.exported, one.adopted, between->first),
            one.to);
    }
    return violations_;
  }

 private:
  struct Grant {
    std::string owner_id;
    TimePoint at;
  };
  struct Adoption {
    std::string lock;
    std::uint64_t exported;
    std::uint64_t adopted;
    TimePoint from;
    TimePoint to;
  };

  void wrong(std::string what, TimePoint when) { violations_.push_back({std::move(what), when}); }

  World& world_;
  std::vector<LetterPtr> letters_;
  std::map<std::string, std::map<std::uint64_t, Grant>> granted_;
  std::vector<Adoption> adoptions_;
  checkers::Violations violations_;
};

}  // namespace dlock::simulation
