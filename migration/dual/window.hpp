// SPDX-License-Identifier: Apache-2.0
//
// The window of a migration in mode dual: which phases are admitted now, and which programs take
// part. Text and rules; pure. Phase 0 locks the source, 1 the source and then the target, 2 the
// target alone.
//
// It is one note (`window/PLAN`), in a store that does not forget, and changed only by
// compare-and-set on its whole text: so a program registers in one step with the check that its
// phase is admitted (`register` of docs/models/dual.pml). No two of its texts are ever equal: each
// change counts `seq` on, and each start of the plan, or restoration of a lost window, has another
// `born`. So a copy of a request that comes late changes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::core::migration {

inline constexpr int kLastPhase = 2;

/// One program that takes part. A program is one process's use of one plan.
struct Program {
  std::string id;  ///< 8 and 4 hexadecimal digits: `0123abcd-4567`; its claims' ids begin so
  int phase = 0;   ///< static: another phase is another program
  std::uint64_t beat = 0;  ///< the window's seq when it last registered or renewed
  /// No token above this was given to its callers: written before a higher one is.
  std::uint64_t top = 0;
  std::int64_t pid = 0;  ///< 0: no pid of its host; it runs in a pid namespace
  std::string host;      ///< for people; shortened, and what a text cannot have replaced by `_`
  std::string app;
  bool operator==(const Program&) const = default;
};

struct Window {
  std::string plan;
  std::string plan_id;  ///< of that start of the plan: Plan::id
  std::string from;
  std::string to;
  std::string born;  ///< 16 hexadecimal digits, of this life of the window
  int lo = 0;        ///< phases lo..hi are admitted; hi is lo or lo + 1
  int hi = 0;
  /// Counts the changes of lo and hi. 0: its start is not over, and nobody may register.
  std::uint64_t ver = 0;
  std::uint64_t seq = 0;    ///< counts all changes
  std::uint64_t floor = 0;  ///< tokens are above this
  std::uint64_t top = 0;    ///< the highest Program::top of those that are not here any more
  std::chrono::milliseconds lease{0};  ///< of a registration
  bool finished = false;          ///< for good: the target alone, and nobody registers any more
  std::int64_t since_ms = 0;      ///< wall clock of the last change of lo and hi: for people
  std::vector<Program> programs;  ///< sorted by id, distinct

  bool is_open() const noexcept { return ver > 0; }
  bool admits(int phase) const noexcept { return is_open() && lo <= phase && phase <= hi; }
  const Program* find(std::string_view id) const noexcept;
  /// Above all that was given out by programs of the plan, and never below the floor.
  std::uint64_t highest_token() const noexcept;
  bool operator==(const Window&) const = default;
};

/// A note may have 64 KiB.
inline constexpr std::size_t kLongestWindow = 65'000;
inline constexpr std::size_t kMostPrograms = 500;
/// A registration is over when nothing is heard of it for so long, unless the plan says otherwise.
inline constexpr std::chrono::milliseconds kDefaultRegistration{10'000};
inline constexpr std::chrono::milliseconds kShortestRegistration{500};
inline constexpr std::chrono::milliseconds kLongestRegistration{600'000};

std::string window_key(std::string_view plan);
std::string to_text(const Window& window);
/// Empty unless it is exactly what to_text() writes; `why` (if given) then says what is wrong.
std::optional<Window> parse_window(std::string_view text, std::string* why = nullptr);

/// The id of a program, from a UUID of its own.
std::string program_id(std::string_view uuid);
/// Whether a claim with this id is that program's; a store may have put something before it.
bool is_claim_of(std::string_view claim_id, std::string_view program) noexcept;
/// The id that a coordinator's own claims begin with.
std::string coordinator_id(std::string_view plan_id);
/// As a text can have it.
std::string plain_word(std::string_view text, std::size_t longest);

enum class Entry {
  entered,
  not_admitted,  ///< lo..hi does not have its phase
  full,          ///< kMostPrograms are here
};
/// Registers `program`, or registers it anew; its beat is set. The window is changed only if it
/// entered.
Entry enter(Window& window, Program program);
/// Still here: its beat and top (if higher) are set. False, and nothing changed: it is not.
bool renew(Window& window, std::string_view id, std::uint64_t top);
/// Takes the registration away, and keeps its top. False: it was not here.
bool leave(Window& window, std::string_view id);

/// Those whose phase is not admitted: they finish, and nothing more is opened before they are over.
std::vector<Program> laggards(const Window& window);
/// `worker (pid 4711 on host, phase 0)`
std::string describe(const Program& program);

}  // namespace dlock::core::migration
