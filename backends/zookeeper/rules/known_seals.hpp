// SPDX-License-Identifier: Apache-2.0
//
// Where seals were met last, by the lock's node. A guess only: it is asked for together with what
// has to be asked anyway, so that a lock that was moved costs one round trip here, not two; what
// the server answers counts. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace dlock::zookeeper {

class KnownSeals {
 public:
  /// The seal's path; empty: none was met.
  std::string of(const std::string& directory) const {
    const auto found = seals_.find(directory);
    return found == seals_.end() ? std::string() : found->second;
  }
  void met(const std::string& directory, const std::string& seal) {
    if (seals_.size() >= kMost) seals_.clear();
    seals_[directory] = seal;
  }
  void missed(const std::string& directory) { seals_.erase(directory); }

 private:
  static constexpr std::size_t kMost = 10'000;
  std::map<std::string, std::string> seals_;
};

}  // namespace dlock::zookeeper
