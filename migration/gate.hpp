// SPDX-License-Identifier: Apache-2.0
//
// The gate of a plan: one note of the source store, by which the plan has every lock of its
// patterns, those too that are made later. It never says where a lock is, but what to do when the
// source grants one that has no record of its own:
//
//   none     no plan was started: hold
//   OPEN     hold
//   TURNED   seal the lock (record.hpp), then go on as with any that is moved
//   FINAL    for ever: the source is not asked; the target, with the gate's floor
//   ENDED    the plan was withdrawn, for ever: hold; nothing is sealed any more
//
// Whoever claims compares the gate in the same step as the claim (GateCheck). No text of a gate
// ever comes back: its version rises with every turn. docs/models/gate.pml.
//
//   dlock-gate1 TURNED ver=2 target=redis floor=0 max_lease_ms=30000 plan=billing-2026
//     id=0123456789abcdef since_ms=1763770000000        (one line)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/spi/migration_store.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

enum class GateState { open, turned, final_, ended };

const char* to_string(GateState state) noexcept;

struct Gate {
  GateState state = GateState::open;
  std::uint64_t version = 0;  ///< rises with every change
  std::string target;         ///< the store's name in the configuration
  std::uint64_t floor = 0;    ///< of FINAL: at least every token that the source has given
  std::chrono::milliseconds max_lease{0};
  std::string plan;
  std::string plan_id;        ///< of that start of the plan
  std::int64_t since_ms = 0;  ///< wall clock of the change: for people, never for a decision
  bool operator==(const Gate&) const noexcept = default;
};

std::string gate_key(std::string_view plan);

std::string to_text(const Gate& gate);
/// Empty unless it is exactly what to_text() writes; `why` (if given) then says what is wrong.
std::optional<Gate> parse_gate(std::string_view text, std::string* why = nullptr);

/// The gate of a plan that is started, after what an earlier start of that name has left.
Gate opened_gate(const Plan& plan, const std::optional<Gate>& before, std::int64_t wall_clock_ms);
/// One turn later.
Gate turned_to(const Gate& gate, GateState state, std::int64_t wall_clock_ms);

/// What a claim says that was made when the gate was as `text`: with a TURNED one it may not hold.
GatePtr check_of(std::string_view plan, const std::string& text, const std::optional<Gate>& gate,
                 std::int64_t wall_clock_ms);
/// MOVED, as whoever seals a lock under a TURNED gate writes it, granted with `token`.
Record moved_record(const Gate& gate, std::uint64_t token, std::int64_t wall_clock_ms);
/// What a FINAL gate says of every lock of the plan.
Record final_record(const Gate& gate);

inline constexpr Duration kGateAge = std::chrono::seconds(10);

/// What the programs of this process believe of a plan's gate. It is learnt from the claims that
/// were refused for it, so that it costs no request; and as a lock that is moved is never refused
/// for it, from a look beside one that was acquired, each kGateAge at most. Loop only.
class GateBelief {
 public:
  explicit GateBelief(std::string plan) : plan_(std::move(plan)) {}

  const std::string& text() const noexcept { return text_; }
  const std::optional<Gate>& gate() const noexcept { return gate_; }
  bool is(GateState state) const noexcept { return gate_ && gate_->state == state; }
  /// False: what stands there is no gate of that plan. FINAL stays.
  bool learn(const std::string& text, std::string& why);
  /// Whether to look; true at most once in kGateAge, and never once it is FINAL.
  bool is_due(TimePoint now);
  GatePtr check(std::int64_t wall_clock_ms) const {
    return check_of(plan_, text_, gate_, wall_clock_ms);
  }

 private:
  const std::string plan_;
  std::string text_;
  std::optional<Gate> gate_;
  std::optional<TimePoint> looked_at_;
};

/// What a claim's id begins with, in place of its first 13 characters: that its program has the
/// plan's route. For people: who does not take part is named by it.
std::string participant_mark(std::string_view plan);

}  // namespace dlock::core::migration
