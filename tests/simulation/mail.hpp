// SPDX-License-Identifier: Apache-2.0
//
// Mail: exported grants on their way from one simulated program to others. Some are given to
// several, some late, some to nobody. Notices a grant that was adopted twice, and one that somebody
// else had in between.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

struct Letter {
  std::string lock;
  std::string text;
  std::uint64_t token = 0;  ///< of the exporter
  int adopted = 0;
};
using LetterPtr = std::shared_ptr<Letter>;

class Mail {
 public:
  explicit Mail(World& world) : world_(world) {}

  void post(Letter letter) { letters_.push_back(std::make_shared<Letter>(std::move(letter))); }
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
  void granted(const std::string& lock, std::uint64_t token, const LetterPtr& letter) {
    auto& tokens = tokens_[lock];
    if (letter && ++letter->adopted > 1) wrong(fmt::format("'{}' was adopted twice", lock));
    const auto between = letter ? tokens.upper_bound(letter->token) : tokens.end();
    if (between != tokens.end() && *between < token) {
      wrong(fmt::format("'{}' was exported with token {} and adopted with {}, and somebody had {}",
                        lock, letter->token, token, *between));
    }
    tokens.insert(token);
    if (letter) ++adoptions_;
  }

  std::uint64_t adoptions() const noexcept { return adoptions_; }
  const checkers::Violations& violations() const noexcept { return violations_; }

 private:
  void wrong(std::string what) { violations_.push_back({std::move(what), world_.now()}); }

  World& world_;
  std::vector<LetterPtr> letters_;
  std::map<std::string, std::set<std::uint64_t>> tokens_;
  std::uint64_t adoptions_ = 0;
  checkers::Violations violations_;
};

}  // namespace dlock::simulation
