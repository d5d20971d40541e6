// SPDX-License-Identifier: Apache-2.0
//
// The last known version and text of each note. So a claim under a plan's gate can name the version
// without reading it again. The check in the transaction finds a later change. Lives on one loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dlock::zookeeper {

class KnownGates {
 public:
  void learn(const std::string& key, std::string text, std::int32_t version) {
    if (known_.size() >= kMost) known_.clear();
    known_[key] = {std::move(text), version};
  }
  void forget(const std::string& key) { known_.erase(key); }
  /// Returns the version that had this text, if it was the last one read.
  std::optional<std::int32_t> version_of(const std::string& key, const std::string& text) const {
    const auto known = known_.find(key);
    if (known == known_.end() || known->second.text != text) return {};
    return known->second.version;
  }

 private:
  /// A program takes part in few plans.
  static constexpr std::size_t kMost = 64;
  struct Known {
    std::string text;
    std::int32_t version = 0;
  };
  std::map<std::string, Known> known_;
};

}  // namespace dlock::zookeeper
