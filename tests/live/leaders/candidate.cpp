// SPDX-License-Identifier: Apache-2.0
//
// dlock-candidate URL JOURNAL: stands for one lead all its life, asks itself all the time whether
// it leads, and appends `TOKEN FROM UNTIL` to its journal (boot time, ns) while it does.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "dlock/clock.hpp"
#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;

struct Term {
  std::uint64_t token = 0;
  dlock::TimePoint from;
};

class Journal {
 public:
  explicit Journal(const char* path) : file_(::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600)) {}
  /// One write: a reader, or the end of this process, finds whole lines.
  void add(const Term& term, dlock::TimePoint until) const {
    const auto line = fmt::format("{} {} {}\n", term.token, term.from.time_since_epoch().count(),
                                  until.time_since_epoch().count());
    if (::write(file_, line.data(), line.size()) < 0) std::perror("journal");
  }

 private:
  int file_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto locks = dlock::LockManager::open(argv[1]);
  const Journal journal(argv[2]);
  dlock::LeaderOptions options;
  options.stand_again = true;
  options.times.retry = 100ms;
  dlock::Leader leader(locks, "lead", {}, options);
  leader.campaign();
  std::optional<Term> term;
  for (;;) {
    std::this_thread::sleep_for(1ms);
    const auto token = leader.token();
    const auto asked = dlock::BoottimeClock::now();
    const bool leads = leader.is_leader();
    const auto answered = dlock::BoottimeClock::now();
    // In between it may have lost one term and begun another.
    if (!leads || !token || leader.token() != token) continue;
    if (!term || term->token != *token) {
      term = Term{*token, answered};
    } else {
      journal.add(*term, asked);
    }
  }
}
