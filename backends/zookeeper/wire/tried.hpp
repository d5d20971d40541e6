// SPDX-License-Identifier: Apache-2.0
//
// What became of the tries to connect, server by server, in words for the error message. The
// library says only that one has failed: whom it reached is seen from outside, and of the others it
// is known that they refused, or did not answer, together. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::zookeeper {

class Tried {
 public:
  /// The present try has come as far as a connection with this one.
  void reached(std::string server) { peer_ = std::move(server); }
  /// ... whose first bytes are no ZooKeeper's.
  void answered_wrongly() noexcept { wrong_ = true; }
  /// We give the present try up.
  void left() noexcept { left_ = true; }
  /// The present try has failed; `silent`: by the clock.
  void failed(bool silent);
  void clear() { *this = Tried(); }

  /// `addresses`: separated by commas; `under_way`: there is a present try.
  std::string text(std::string_view addresses, bool under_way) const;

 private:
  std::map<std::string, const char*, std::less<>> seen_;
  std::string peer_;
  bool wrong_ = false;
  bool left_ = false;
  bool refused_ = false;  ///< one that was not reached
  bool silent_ = false;   ///< the same
};

}  // namespace dlock::zookeeper
