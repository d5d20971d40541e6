// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/tried.hpp"

#include <algorithm>
#include <utility>

namespace dlock::zookeeper {
namespace {

constexpr const char* kWrong = "answers, but is not a ZooKeeper server";
constexpr const char* kSilent = "does not answer";
constexpr const char* kMute =
    "accepts the connection and does not answer: is it a ZooKeeper server?";
constexpr const char* kRefused = "refused the connection";
constexpr const char* kHungUp =
    "hung up (as a server does that has all the clients of its maxClientCnxns)";

}  // namespace

void Tried::failed(bool silent) {
  const bool by_clock = std::exchange(left_, false) || silent;
  const bool wrong = std::exchange(wrong_, false);
  const auto peer = std::exchange(peer_, {});
  if (!peer.empty()) {
    seen_[peer] = wrong ? kWrong : by_clock ? kMute : kHungUp;
  } else {
    (by_clock ? silent_ : refused_) = true;
  }
}

std::string Tried::text(std::string_view addresses, bool under_way) const {
  std::string text;
  while (!addresses.empty()) {
    const auto address = addresses.substr(0, addresses.find(','));
    addresses.remove_prefix(std::min(addresses.size(), address.size() + 1));
    if (!text.empty()) text += ", ";
    text.append(address);
    const auto seen = seen_.find(address);
    const bool silent = silent_ || (under_way && peer_.empty());
    const char* what = nullptr;
    if (seen != seen_.end()) {
      what = seen->second;
    } else if (under_way && address == peer_) {
      what = wrong_ ? kWrong : kMute;
    } else if (refused_) {
      what = silent ? "refused the connection or does not answer" : kRefused;
    } else if (silent) {
      what = kSilent;
    }
    if (what != nullptr) text.append(" ").append(what);
  }
  return text;
}

}  // namespace dlock::zookeeper
