// SPDX-License-Identifier: Apache-2.0
#include "cli/output/last_run.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <ctime>

#include "cli/output/text.hpp"

namespace dlock::cli {
namespace {

using Reason = RunRefusal::Reason;

std::string next_words(const RunRefusal& why) {
  const auto left = why.last->next_possible() - why.now;
  return left.count() <= 0 ? "another may follow now"
                           : fmt::format("another may follow in {}", rounded(left));
}

/// The option that runs a tick again.
std::string repeat_words(const RunRecord& last) {
  const bool has_failed =
      last.outcome == RunRecord::Outcome::failed || last.outcome == RunRecord::Outcome::overran;
  return has_failed ? "--retry-failed repeats it now" : "--again runs it now";
}

}  // namespace

std::string utc(std::chrono::milliseconds since_1970) {
  const auto seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

std::string how_it_went(const RunRecord& run) {
  std::string text =
      run.outcome == RunRecord::Outcome::running ? "runs, or has died" : to_string(run.outcome);
  if (run.status) text += fmt::format(" (status {})", *run.status);
  if (run.ended) text += fmt::format(", ended {}", utc(*run.ended));
  return text;
}

std::string words_for(const std::string& name, const RunRefusal& why, const std::string& holder) {
  const std::string by = why.last ? who(why.last->owner) : std::string();
  switch (why.reason) {
    case Reason::was_run:
      return fmt::format("{}: this tick was run by {}, {}; {}; {}", name, by,
                         how_it_went(*why.last), next_words(why), repeat_words(*why.last));
    case Reason::running:
      return fmt::format("{}: is being run by {} since {}; if that has died, {}", name, by,
                         utc(why.last->started), next_words(why));
    case Reason::too_early:
      return fmt::format("{}: was run by {}, {}; {} (--at-least-for)", name, by,
                         how_it_went(*why.last), next_words(why));
    case Reason::busy:
    case Reason::none:
      break;
  }
  return holder.empty() ? fmt::format("{}: somebody else holds the lock", name)
                        : fmt::format("{}: {}", name, holder);
}

boost::json::value run_value(const std::optional<RunRecord>& run) {
  if (!run) return nullptr;
  const auto ms = [](const std::optional<std::chrono::milliseconds>& time) {
    return time ? boost::json::value(time->count()) : boost::json::value(nullptr);
  };
  return boost::json::object{
      {"outcome", to_string(run->outcome)},
      {"status", run->status ? boost::json::value(*run->status) : boost::json::value(nullptr)},
      {"tick", run->tick ? boost::json::value(*run->tick) : boost::json::value(nullptr)},
      {"token", run->token ? boost::json::value(*run->token) : boost::json::value(nullptr)},
      {"started_ms", run->started.count()},
      {"ended_ms", ms(run->ended)},
      {"next_possible_ms", run->next_possible().count()},
      {"owner", owner_value(run->owner)}};
}

}  // namespace dlock::cli
