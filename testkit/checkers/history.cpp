// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace dlock::checkers {
namespace {

class Reader {
 public:
  explicit Reader(Violations& broken) : broken_(broken) {}

  void read(const Event& event) {
    if (event.at < last_) complain(event, "comes after a later event");
    last_ = std::max(last_, event.at);
    switch (event.kind) {
      case EventKind::granted:
        return begin(event);
      case EventKind::extended:
        if (auto* grant = living(event, "was extended")) {
          if (event.at >= grant->deadlines.rbegin()->second) {
            complain(event, "was extended after its deadline had passed");
          }
          grant->deadlines[event.at] = event.until;
        }
        return;
      case EventKind::shared:
        if (auto* grant = living(event, "became a reader")) grant->shared = event.at;
        return;
      case EventKind::releasing:
        if (auto* grant = known(event, "was released")) {
          if (grant->releasing) complain(event, "was released twice");
          grant->releasing = event.at;
        }
        return;
      case EventKind::told_lost:
        if (auto* grant = living(event, "was told lost")) grant->told_lost = event.at;
        return;
      case EventKind::died:
        for (auto& [id, grant] : grants_) {
          if (grant.client == event.client && !grant.died) grant.died = event.at;
        }
        return;
      case EventKind::dropped:
        known(event, "was dropped");
        return;
      case EventKind::wanted:
      case EventKind::given_up:
      case EventKind::faulted:
      case EventKind::healed:
        return;
    }
  }

  std::map<GrantId, Grant> take() { return std::move(grants_); }

 private:
  void begin(const Event& event) {
    Grant grant{event.name, event.client, event.token, event.at, {}, {}, {}, {}, event.mode};
    grant.permits = event.permits;
    grant.deadlines[event.at] = event.until;
    if (!grants_.emplace(event.grant, std::move(grant)).second) {
      complain(event, "was granted twice");
    }
  }
  Grant* known(const Event& event, const char* what) {
    const auto found = grants_.find(event.grant);
    if (found != grants_.end()) return &found->second;
    complain(event, fmt::format("{} but never granted", what));
    return nullptr;
  }
  Grant* living(const Event& event, const char* what) {
    Grant* grant = known(event, what);
    if (grant == nullptr) return nullptr;
    if (grant->told_lost) {
      complain(event, fmt::format("{} after it was told lost", what));
      return nullptr;
    }
    if (grant->releasing) {
      complain(event, fmt::format("{} after its release", what));
      return nullptr;
    }
    if (grant->died) {
      complain(event, fmt::format("{} after its client died", what));
      return nullptr;
    }
    return grant;
  }
  void complain(const Event& event, const std::string& what) {
    broken_.push_back({fmt::format("grant {} {}", event.grant, what), event.at});
  }

  Violations& broken_;
  std::map<GrantId, Grant> grants_;
  TimePoint last_{};
};

}  // namespace

bool Grant::believed_at(TimePoint when) const {
  if (when < granted) return false;
  if (releasing && *releasing <= when) return false;
  if (told_lost && *told_lost <= when) return false;
  if (died && *died <= when) return false;
  const auto after = deadlines.upper_bound(when);
  return after != deadlines.begin() && when < std::prev(after)->second;
}

std::map<GrantId, Grant> grants_of(const History& history, Violations& broken) {
  Reader reader(broken);
  for (const auto& event : history) reader.read(event);
  return reader.take();
}

}  // namespace dlock::checkers
