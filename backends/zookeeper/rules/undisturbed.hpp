// SPDX-License-Identifier: Apache-2.0
//
// Proves without a listing that a claim is alone in the queue. An ensemble numbers its writes
// without a gap, for all clients. If the number of this session's create is two above that of its
// last one, the only write in between, in the whole ensemble, was its own delete. If the queue was
// otherwise empty then, it is empty now. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::zookeeper {

/// The last lock of this session that was alone in its queue. Not thread-safe.
class Undisturbed {
 public:
  /// A listing that was requested after that birth had only the node that was born then.
  void alone(const std::string& directory, std::int64_t born) {
    if (directory_ != directory) directory_ = directory;
    born_ = born;
    removed_ = false;
  }
  /// The delete of that node was answered: the node existed and is deleted.
  void removed(const std::string& directory, std::int64_t born) {
    if (born == born_ && directory == directory_) removed_ = true;
  }

  /// The session is a new one: the ensemble may also be a new one that counts from one.
  void forget() { *this = {}; }

  /// Returns the birth of the last node there, from which a create that is sent now may prove
  /// something. 0: it proves nothing.
  std::int64_t basis(const std::string& directory) const {
    return removed_ && directory == directory_ ? born_ : 0;
  }
  /// Returns whether the node born then is the only one there. `basis` is from before its create
  /// was sent.
  static bool proves(std::int64_t basis, std::int64_t born) {
    return basis != 0 && born == basis + 2;
  }
  /// After each create.
  void entered(bool proven) { streak_ = proven ? streak_ + 1 : 0; }
  /// Returns whether the proof succeeded so often that a listing is not requested in advance. A
  /// wrong guess costs a round trip.
  bool is_likely() const { return streak_ >= kStreak; }

 private:
  static constexpr int kStreak = 2;
  std::string directory_;
  std::int64_t born_ = 0;
  bool removed_ = false;
  int streak_ = 0;
};

}  // namespace dlock::zookeeper
