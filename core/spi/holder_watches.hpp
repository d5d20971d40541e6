// SPDX-License-Identifier: Apache-2.0
//
// The functions of this process to call when the holder of a lock changes, by the locks' names. The
// store is asked to watch each name once. Loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlock::core {

class HolderWatches {
 public:
  using Id = std::uint64_t;
  /// Must not throw, nor call this object.
  using Changed = std::function<void()>;

  /// True: the first one of that name.
  bool add(const std::string& name, Id id, Changed changed);
  /// True: it was the last one of that name.
  bool remove(const std::string& name, Id id) noexcept;
  void tell(const std::string& name) const;
  void tell_all() const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, std::map<Id, Changed>> watches_;
};

}  // namespace dlock::core
