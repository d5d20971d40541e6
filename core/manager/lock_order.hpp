// SPDX-License-Identifier: Apache-2.0
//
// LockOrder: the orders in which the locks of one manager are acquired inside each other, and a
// warning when they could make threads wait for each other (as lockdep of the Linux kernel does it:
// an order is enough, no thread need hang). It knows only names; nesting.hpp knows the holders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::core {

/// How a lock was asked for, and where, if that is known.
struct Call {
  const char* what = "acquire()";
  const char* file = nullptr;
  std::uint32_t line = 0;
};

/// Thread safety: all members from any thread.
class LockOrder {
 public:
  using Tell = std::function<void(const std::string&)>;
  static constexpr std::size_t kMostPairs = 4096;
  static constexpr std::size_t kMostWarnings = 100;

  explicit LockOrder(Tell tell) : tell_(std::move(tell)) {}

  /// The calling thread has `first` and waits for `second`. The first time that it is seen, `tell`
  /// is called if a chain of such pairs leads back.
  void note(const std::string& first, const Call& first_call, const std::string& second,
            const Call& second_call);

  /// How many pairs it remembers; for tests.
  std::size_t size();

 private:
  using Names = std::pair<std::string, std::string>;
  using NamesView = std::pair<std::string_view, std::string_view>;
  struct ByNames {
    using is_transparent = void;
    template <class One, class Other>
    bool operator()(const One& one, const Other& other) const {
      return NamesView(one.first, one.second) < NamesView(other.first, other.second);
    }
  };
  /// How each was taken, in words.
  struct Seen {
    std::string first;
    std::string second;
  };
  using Pairs = std::map<Names, Seen, ByNames>;

  void make_room();
  Pairs::const_iterator remember(Names names, Seen seen);
  std::vector<Pairs::const_iterator> chain(std::string_view from, std::string_view to) const;

  const Tell tell_;
  std::mutex mutex_;
  Pairs pairs_;
  std::deque<Pairs::iterator> oldest_;
  std::size_t warnings_ = 0;
};

}  // namespace dlock::core
