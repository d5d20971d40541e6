// SPDX-License-Identifier: Apache-2.0
//
// Capabilities: the promises of a store with the present configuration of its server. Declared by
// the backend, checked against `require`, printed by `dlock doctor`, measured by the comparison
// suite.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlock::inline v0 {

/// exclusive: never two holders, under the named assumptions. best_effort: usually one.
enum class Guarantee { exclusive, best_effort };

/// How far fencing tokens keep rising. durable: through everything short of restoring an old
/// backup. time_seeded: through data loss too, while no server clock steps back. none: no token.
enum class TokenStrength { durable, time_seeded, none };

/// How a waiter learns that it may acquire. push: the store notifies it. poll: it asks again.
enum class WakeUp { push, poll };

/// Scope of the lease: each claim, the whole session, or none. With none, the kernel watches the
/// process or connection.
enum class LeaseScope { claim, session, none };

struct Capabilities {
  Guarantee guarantee = Guarantee::best_effort;
  /// An assumption of `guarantee`: its name (`server_clock_not_stepped`) and one sentence.
  struct Assumption {
    std::string name;
    std::string meaning;
  };
  std::vector<Assumption> assumptions;
  /// Why the guarantee is not more, each with the setting that would raise it. Empty if it is full.
  struct Shortfall {
    std::string reason;
    std::string remedy;
  };
  std::vector<Shortfall> shortfalls;

  bool fair = false;         ///< grants in the order of the requests
  bool shared_mode = false;  ///< readers beside readers
  bool permits = false;      ///< semaphores
  TokenStrength token = TokenStrength::none;
  WakeUp wake_up = WakeUp::poll;
  LeaseScope lease_scope = LeaseScope::claim;

  /// The lease in force: the session timeout the server granted, or the default per claim.
  /// Meaningless with LeaseScope::none.
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds shortest_lease{0};
  std::chrono::milliseconds longest_lease{0};

  bool can_list = false;   ///< `list(prefix)` works
  bool can_evict = false;  ///< `evict(name, token)` works

  /// A holder is notified when another client asks for its lock. The option `cache` needs it: a
  /// lock that stays with the process after its release is freed then.
  bool can_tell_contention = false;

  /// A client learns how many clients wait before it: AcquireOptions::max_queue works.
  bool can_bound_queue = false;

  /// A waiter can pass others: AcquireOptions::head_start works.
  bool can_head_start = false;

  /// A holder can be asked to release its lock, and is notified by push: AcquireOptions::revocable
  /// and LockManager::ask() work.
  bool can_ask = false;

  /// A grant can be exported, and adopted by another process: LockHandle::export_grant() and
  /// LockManager::adopt() work.
  bool can_adopt = false;

  bool can_raise = false;  ///< a claim's `min_token` and `raise` work: a migration may end here
  bool can_seal = false;   ///< records work; a migration may leave only if nothing may lose them
  bool can_gate = false;   ///< claims, seals and records can be made under a gate
  /// Events that may lose a record, each with the setting that prevents it. Empty: none, short of
  /// restoring an old backup.
  std::vector<Shortfall> record_losses;

  /// Facts that the server reported: version, settings that matter. For people.
  std::vector<std::string> notes;
};

/// The answers of a server to the self-test: two owners ask for one key, which is unlike any
/// lock's.
struct SelfTestReport {
  enum class Result : std::uint8_t {
    passed,
    wrong,       ///< The server or a proxy ignores a condition. No lock is granted there.
    not_tested,  ///< The server did not answer, or does not permit the step.
  };
  struct Step {
    std::string name;  ///< `acquire as another owner`
    Result result = Result::not_tested;
    std::string text;  ///< Why it has not passed. Empty: no reason is known.
  };

  std::string server;  ///< Host and port, or the path of a socket.
  std::vector<Step> steps;

  /// Returns a sentence about the first wrong step, with the remedy. Empty if no step is wrong.
  std::string failure_text() const;
};

/// Returns `passed`, `wrong` or `not_tested`.
const char* to_string(SelfTestReport::Result value) noexcept;

const char* to_string(Guarantee value) noexcept;
const char* to_string(TokenStrength value) noexcept;
const char* to_string(WakeUp value) noexcept;
const char* to_string(LeaseScope value) noexcept;

}  // namespace dlock::inline v0
