// SPDX-License-Identifier: Apache-2.0
//
// Who has a lock to himself needs no listing to know it. An ensemble numbers its writes without a
// gap, whoever asks for them: where the number of our create is two above that of our last one,
// nothing has happened in between but our own delete, in the whole ensemble. If nobody else was in
// the queue then, nobody is now. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::zookeeper {

/// The last lock of ours that had nobody else in its queue. Not thread-safe.
class Undisturbed {
 public:
  /// A listing that was asked for after that birth had only the node that was born then.
  void alone(const std::string& directory, std::int64_t born) {
    if (directory_ != directory) directory_ = directory;
    born_ = born;
    removed_ = false;
  }
  /// Our delete of that node has been answered: it was there, and has gone.
  void removed(const std::string& directory, std::int64_t born) {
    if (born == born_ && directory == directory_) removed_ = true;
  }

  /// The session is another one: the ensemble, too, may have been made anew, and count from one.
  void forget() { *this = {}; }

  /// What a create that is sent from now on may prove: the birth of our last node there; 0:
  /// nothing.
  std::int64_t basis(const std::string& directory) const {
    return removed_ && directory == directory_ ? born_ : 0;
  }
  /// True: the node born then is the only one there. `basis` is of before its create was sent.
  static bool proves(std::int64_t basis, std::int64_t born) {
    return basis != 0 && born == basis + 2;
  }
  /// After each create.
  void entered(bool proven) { streak_ = proven ? streak_ + 1 : 0; }
  /// The proof has come so often that a listing need not be asked for beforehand: a wrong guess
  /// costs a round trip.
  bool is_likely() const { return streak_ >= kStreak; }

 private:
  static constexpr int kStreak = 2;
  std::string directory_;
  std::int64_t born_ = 0;
  bool removed_ = false;
  int streak_ = 0;
};

}  // namespace dlock::zookeeper
