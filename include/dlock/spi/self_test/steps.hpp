// SPDX-License-Identifier: Apache-2.0
//
// The self-test of a server: does it refuse what another owner may not do? A server or a proxy that
// ignores conditions grants one lock twice. A backend sends the steps for a key with a random id,
// which differs from the keys of locks, in at most two round trips. Steps and judgement are pure;
// gate.hpp runs the test before the first grant.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dlock/capabilities.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::inline v0 {

/// In the order in which they are sent.
enum class SelfTestStep : std::uint8_t {
  acquire,             ///< Expected: yes.
  acquire_as_another,  ///< Expected: no.
  release_as_another,  ///< Expected: no.
  read_back,           ///< Expected: yes, the value of the first owner.
  remove,              ///< Expected: yes, for the first owner.
};

/// The key of the test expires after this time, if no step removes it.
inline constexpr std::chrono::seconds kSelfTestExpiry{10};

struct SelfTestAnswer {
  enum class Kind : std::uint8_t {
    unanswered,  ///< No answer, or a refusal that can pass: out of memory, read-only, loading.
    denied,      ///< The server does not permit the command, or does not know it.
    no,
    yes,
  };
  Kind kind = Kind::unanswered;
  Failure failure{};  ///< Why, if `unanswered` or `denied`.
};

/// One run of the test. A step may have several answers. The others count only if the first owner
/// has acquired.
class SelfTest {
 public:
  enum class Verdict : std::uint8_t { unanswered, denied, wrong, passed };

  void add(SelfTestStep step, SelfTestAnswer answer) {
    answers_.emplace_back(step, std::move(answer));
  }

  Verdict verdict() const noexcept;
  SelfTestReport report(std::string_view server) const;
  /// Returns why no lock may be granted; clear if `passed` or `denied`. `wrong`: the error of that
  /// verdict.
  Failure failure(std::string_view server, error_code wrong) const;

 private:
  using Answer = std::pair<SelfTestStep, SelfTestAnswer>;
  struct Judged {
    Verdict verdict = Verdict::unanswered;
    const SelfTestAnswer* answer = nullptr;  ///< That decided it. Null: no answer has.
  };

  Judged judge(SelfTestStep step) const noexcept;
  bool has_acquired() const noexcept;

  std::vector<Answer> answers_;
};

}  // namespace dlock::inline v0
