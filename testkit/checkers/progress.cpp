// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace dlock::checkers {
namespace {

/// Walks a history forward and knows, of each name, since when somebody waits for a free lock.
class Walk {
 public:
  Walk(Duration bound, Violations& found) : bound_(bound), found_(found) {}

  void step(const Event& event) {
    judge(event.at);
    switch (event.kind) {
      case EventKind::wanted:
        name(event).wanting.insert(event.client);
        break;
      case EventKind::given_up:
        name(event).wanting.erase(event.client);
        break;
      case EventKind::granted:
        name(event).wanting.erase(event.client);
        name(event).holders.insert(event.grant);
        name(event).since = kNever;
        grants_[event.grant] = {event.name, event.client};
        break;
      case EventKind::releasing:
      case EventKind::told_lost:
      case EventKind::dropped:
        if (event.is_broken) break;
        if (const auto of = grants_.find(event.grant); of != grants_.end()) {
          names_[of->second.name].holders.erase(event.grant);
        }
        break;
      case EventKind::died:
        for (auto& [text, one] : names_) one.wanting.erase(event.client);
        for (const auto& [id, of] : grants_) {
          if (of.client == event.client) names_[of.name].holders.erase(id);
        }
        break;
      case EventKind::faulted:
        healthy_ = false;
        break;
      case EventKind::healed:
        healthy_ = true;
        for (auto& [text, one] : names_) one.since = kNever;
        break;
      case EventKind::shared:
      case EventKind::extended:
        break;
    }
    for (auto& [text, one] : names_) one.count_from(event.at, healthy_);
  }

  void judge(TimePoint now) {
    for (auto& [text, one] : names_) {
      if (one.since == kNever || now <= one.since + bound_) continue;
      found_.push_back({fmt::format("'{}' is free and wanted for longer than {} ms", text,
                                    bound_ / std::chrono::milliseconds(1)),
                        one.since + bound_});
      one.since = kNever;  // once is enough
      one.reported = true;
    }
  }

 private:
  struct Name {
    std::set<std::string> wanting;
    std::set<GrantId> holders;
    TimePoint since = kNever;
    bool reported = false;

    void count_from(TimePoint now, bool healthy) {
      const bool waits = healthy && !wanting.empty() && holders.empty();
      if (!waits) {
        since = kNever;
        reported = false;
      } else if (since == kNever && !reported) {
        since = now;
      }
    }
  };
  struct Of {
    std::string name;
    std::string client;
  };
  Name& name(const Event& event) { return names_[event.name]; }

  Duration bound_;
  Violations& found_;
  std::map<std::string, Name> names_;
  std::map<GrantId, Of> grants_;
  bool healthy_ = true;
};

}  // namespace

Violations check_progress(const History& history, Duration bound, TimePoint end) {
  Violations found;
  grants_of(history, found);
  Walk walk(bound, found);
  for (const auto& event : history) walk.step(event);
  walk.judge(end);
  return found;
}

}  // namespace dlock::checkers
