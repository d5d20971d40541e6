// SPDX-License-Identifier: Apache-2.0
//
// The outcome of the tries to connect, server by server, as text for the error message. The library
// reports only that a try has failed. The peer of a connection is seen from outside. For the other
// servers it is only known that they refused, or did not answer, together. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::zookeeper {

class Tried {
 public:
  /// The current try has a connection with this server.
  void reached(std::string server) { peer_ = std::move(server); }
  /// The first bytes of that server are not a ZooKeeper reply.
  void answered_wrongly() noexcept { wrong_ = true; }
  /// The current try is given up.
  void left() noexcept { left_ = true; }
  /// The current try has failed; `silent`: it timed out.
  void failed(bool silent);
  void clear() { *this = Tried(); }

  /// `addresses`: separated by commas; `under_way`: there is a current try.
  std::string text(std::string_view addresses, bool under_way) const;

 private:
  std::map<std::string, const char*, std::less<>> seen_;
  std::string peer_;
  bool wrong_ = false;
  bool left_ = false;
  bool refused_ = false;  ///< an unreached server refused
  bool silent_ = false;   ///< an unreached server did not answer
};

}  // namespace dlock::zookeeper
