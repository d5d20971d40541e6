// SPDX-License-Identifier: Apache-2.0
//
// Recorder: the observer of a run. Writes down, on the world's clock, what the programs were told
// and what they did; the checkers judge it. Reads a handle's deadline from outside, after each step
// of its process, so that it knows what the program could have believed at any moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/store/hold.hpp"
#include "testkit/checkers/history.hpp"
#include "testkit/checkers/register.hpp"
#include "tests/simulation/fault.hpp"
#include "tests/simulation/process.hpp"

namespace dlock::simulation {

using checkers::GrantId;

/// The servers forgot a lock that somebody held.
struct Forgotten {
  TimePoint at;  ///< not before
  TimePoint by;  ///< not after
  std::string lock;
  std::string owner_id;
  Fault cause;
  bool is_certain = true;  ///< else it may never have come about
};

class Recorder {
 public:
  explicit Recorder(World& world) : world_(world) {}

  void wanted(const Process& who, const std::string& actor, const std::string& lock);
  void given_up(const Process& who, const std::string& actor, const std::string& lock);
  /// `hold`: what stands behind the handle.
  GrantId granted(Process& who, const std::string& actor, const std::string& lock,
                  const std::shared_ptr<core::Hold>& hold);
  void became_reader(const Process& who, GrantId grant);
  void releasing(const Process& who, GrantId grant);
  void told_lost(const Process& who, GrantId grant, LossReason why = LossReason::none);
  void dropped(const Process& who, GrantId grant);
  void died(const Process& who);
  /// A renewal of the process was answered: that claim is gone. Its holder must hear of it in the
  /// same step.
  void gone(const std::string& owner_id);
  void faulted();
  void healed();
  void forgotten(const std::string& lock, const std::string& owner_id, Fault cause);
  /// An operator breaks the lock of that owner, between `begun` and `by`.
  /// Not certain: his request may have been lost on its way.
  void broken(const std::string& lock, const std::string& owner_id, TimePoint begun, TimePoint by,
              bool is_certain = true);
  /// Records that a lock was made for that owner. `token`: 0 if it is not known.
  void made(const std::string& owner_id, std::uint64_t token) {
    made_[owner_id].push_back({world_.now(), token});
  }
  /// Returns true if a lock was made for that owner after `since`, with a token of at most `token`.
  /// A lock with a known token counts at `since`, too: a script can break a lock and grant it to
  /// the same owner at once.
  bool was_made(const std::string& owner_id, TimePoint since, std::uint64_t token) const {
    const auto found = made_.find(owner_id);
    if (found == made_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Made& made) {
      const bool is_later = made.at > since || (made.at == since && made.token != 0);
      return is_later && made.token <= token;
    });
  }
  /// A guarded resource takes the write, or refuses a stale token.
  void write(GrantId grant, const std::string& lock, std::uint64_t token);
  /// After a step of the process: deadlines that moved.
  void look_at(Process& who);

  const checkers::History& history() const noexcept { return history_; }
  const std::map<std::string, std::vector<checkers::Write>>& writes() const noexcept {
    return writes_;
  }
  const std::vector<Forgotten>& forgotten() const noexcept { return forgotten_; }
  /// By whom the store knows a grant.
  const std::string& owner_of(GrantId grant) const { return owners_.at(grant); }
  std::uint64_t acquisitions() const noexcept { return last_grant_; }
  std::uint64_t contended() const noexcept { return contended_; }

  /// Somebody who looks at a program from outside has found this.
  void wrong(std::string what) { violations_.push_back({std::move(what), world_.now()}); }

  /// What the observer itself found wrong.
  const checkers::Violations& violations() const noexcept { return violations_; }
  /// Losses of running processes that were not told before, by how long after the local deadline
  /// they were told; negative: before it.
  const std::vector<Duration>& lateness() const noexcept { return lateness_; }

 private:
  struct Live {
    Process* process;
    std::string lock;
    std::weak_ptr<core::Hold> hold;
    TimePoint until;  ///< on the world's clock
    bool gone = false;
  };
  void add(checkers::Event event);
  TimePoint deadline_of(Process& who, core::Hold& hold) const;

  World& world_;
  checkers::History history_;
  std::map<GrantId, Live> live_;
  std::map<GrantId, std::string> owners_;
  std::map<std::string, int> interested_;  ///< by lock: who wants or holds it
  struct Wanting {
    std::string lock;
    bool contended = false;  ///< somebody wanted or held it already
  };
  std::map<std::string, Wanting> wanting_;  ///< by actor
  std::map<const Process*, std::set<std::string>> actors_;
  std::map<std::string, std::uint64_t> highest_;
  std::map<std::string, std::vector<checkers::Write>> writes_;
  std::vector<Forgotten> forgotten_;
  struct Made {
    TimePoint at{};
    std::uint64_t token = 0;
  };
  std::map<std::string, std::vector<Made>> made_;
  std::vector<Duration> lateness_;
  checkers::Violations violations_;
  GrantId last_grant_ = 0;
  std::uint64_t contended_ = 0;
};

}  // namespace dlock::simulation
