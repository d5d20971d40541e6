// SPDX-License-Identifier: Apache-2.0
//
// Of the notes that were read: which version of the node said what, so that a claim under a plan's
// gate can name the version without reading it again. What has changed since is found by the check
// itself. Lives on one loop.
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
  /// Of the version that said this, if it was the last that was read.
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
