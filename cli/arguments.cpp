// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "cli/verbs/commands.hpp"
#include "dlock/duration.hpp"
#include "dlock/leader.hpp"
#include "dlock/options.hpp"
#include "dlock/semaphore.hpp"
#include "dlock/version.hpp"
#include "program/exit_codes.hpp"
#include "program/parse.hpp"
#include "program/usage_hint.hpp"

namespace dlock::cli {

using program::first_word;
using program::kExitMeanings;
using program::status;

namespace {

using Milliseconds = std::chrono::milliseconds;

/// An option whose value is a duration; `forever` where a wait may have no end.
CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::optional<Milliseconds>& target, const std::string& help,
                          bool allow_forever = false) {
  auto* option = app.add_option_function<std::string>(
      name,
      [&target, name, allow_forever](const std::string& text) {
        if (allow_forever && text == "forever") {
          target = kWaitForever;
          return;
        }
        const auto duration = parse_duration(text);
        if (!duration)
          throw CLI::ValidationError(name, fmt::format("'{}': {}", text, duration.error));
        target = *duration.value;
      },
      help);
  return option->type_name("DURATION");
}

/// The value of `-w`: a bare number means seconds, as in flock(1).
Milliseconds parse_flock_wait(const std::string& text) {
  const bool is_bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  const auto duration = parse_duration(is_bare ? text + "s" : text);
  if (!duration) throw CLI::ValidationError("-w", fmt::format("'{}': {}", text, duration.error));
  return *duration.value;
}

/// Of `--on-revoke`.
struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr std::array<NamedSignal, 6> kSignals{{{"TERM", SIGTERM},
                                               {"INT", SIGINT},
                                               {"HUP", SIGHUP},
                                               {"QUIT", SIGQUIT},
                                               {"USR1", SIGUSR1},
                                               {"USR2", SIGUSR2}}};

int parse_signal(std::string_view text) {
  const auto name = text.starts_with("SIG") ? text.substr(3) : text;
  const auto found = std::find_if(kSignals.begin(), kSignals.end(),
                                  [name](const NamedSignal& one) { return one.name == name; });
  if (found != kSignals.end()) return found->number;
  throw CLI::ValidationError("--on-revoke",
                             fmt::format("'{}': write TERM, INT, HUP, QUIT, USR1 or USR2", text));
}

std::string exit_table() {
  std::string text = "Exit status:\n";
  for (const auto& [code, meaning] : kExitMeanings) {
    text += fmt::format("  {:<4} {}\n", status(code), meaning);
  }
  return text;
}

class Parser {
 public:
  Parser() {
    app_.name("dlock");
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "dlock " DLOCK_VERSION);
    app_.add_option("--config", arguments_.config_file,
                    "Configuration file (YAML); default: the file that DLOCK_CONFIG names")
        ->type_name("FILE");
    app_.add_option("--store", arguments_.store_url,
                    "One store for every lock, instead of a file; default: DLOCK_STORE")
        ->type_name("URL");
    app_.add_flag("-q,--quiet", arguments_.quiet,
                  "No warnings, and no word of whom we wait for; errors are still told");
    app_.footer([] {
      const auto missing = missing_compare();
      return exit_table() + "\nDurations: 500ms, 10s, 1m30s, 2h. 'dlock help VERB' says more." +
             (missing.empty() ? "" : "\nVerb compare: " + missing);
    });
    add_run();
    add_hold();
    add_status();
    add_list();
    add_break();
    add_doctor();
    add_semaphore();
    add_migrate();
    // parse() passes its words on: they are options of another program.
    add_verb("compare", Verb::compare,
             "Measure which store should hold your locks: speed, safety under real faults, "
             "pitfalls");
  }

  ParsedArguments parse(int argc, const char* const* argv) {
    // The command of `run` is none of CLI11's business: everything behind the first `--`.
    const char* const* end = argv + argc;
    const char* const* dashes =
        std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
    const bool has_dashes = dashes != end;
    if (has_dashes) arguments_.command.assign(dashes + 1, end);
    std::vector<std::string> words(argv + std::min<std::ptrdiff_t>(1, dashes - argv), dashes);
    if (is_at(words, first_word(words), "help")) {
      // Also `help help` prints help.
      for (auto at = first_word(words); is_at(words, at, "help"); at = first_word(words)) {
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
      }
      // CLI11 would print the general help for an unknown verb.
      const auto about = first_word(words);
      if (about == words.size() || has_verb(words[about])) words.emplace_back("--help");
    }
    if (const auto at = first_word(words); is_at(words, at, "compare")) {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
      if (has_dashes) words.emplace_back("--");
      arguments_.verb = Verb::compare;
      arguments_.command.insert(arguments_.command.begin(), words.begin(), words.end());
      return {std::move(arguments_), {}};
    }
    auto ended = program::parse(app_, words, has_dashes, [&] { check(has_dashes); });
    if (ended) return {std::nullopt, std::move(*ended)};
    return {std::move(arguments_), {}};
  }

 private:
  static bool is_at(const std::vector<std::string>& words, std::size_t at, std::string_view word) {
    return at < words.size() && words[at] == word;
  }

  bool has_verb(const std::string& name) {
    return !app_.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; })
                .empty();
  }

  CLI::App& add_verb(const char* name, Verb verb, const char* help) {
    auto* app = app_.add_subcommand(name, help);
    app->fallthrough();  // --store and --config may stand behind the verb, too
    app->footer("");
    app->callback([this, verb] { arguments_.verb = verb; });
    return *app;
  }

  void add_name(CLI::App& app) {
    app.add_option("NAME", arguments_.name, "The lock, for example orders/42")
        ->required()
        ->type_name("");
  }

  void add_json(CLI::App& app, const char* help = "Print JSON instead of a table") {
    app.add_flag("--json", arguments_.json, help);
  }

  void add_acquire_options(CLI::App& app) {
    auto* wait = add_duration(app, "--wait", arguments_.wait,
                              "How long to wait for the lock; 0 asks once (default: the "
                              "configuration's, else forever)",
                              true);
    auto* seconds =
        app.add_option_function<std::string>(
               "-w", [this](const std::string& text) { arguments_.wait = parse_flock_wait(text); },
               "As --wait; a bare number means seconds, as in flock(1)")
            ->excludes(wait)
            ->type_name("SECONDS");
    app.add_flag_callback(
           "-n", [this] { arguments_.wait = Milliseconds(0); }, "As --wait 0")
        ->excludes(wait)
        ->excludes(seconds);
    add_duration(app, "--lease", arguments_.lease,
                 "How long a dead holder may block the others (default: the store's)");
    app.add_option(
           "-E,--conflict-exit-code", arguments_.conflict_exit_code,
           "Exit status when another client had the lock for the whole wait (default: 75). A store "
           "that does not answer is 69")
        ->check(CLI::Range(0, 255))
        ->type_name("N");
    add_duration(app, "--max-hold", arguments_.max_hold,
                 "Hold it this long at most: then it is lost, whatever the renewals (default: the "
                 "configuration's)");
    app.add_option("--max-queue", arguments_.max_queue,
                   "Fail at once if already so many wait for it (default: the configuration's)")
        ->type_name("N");
    add_duration(app, "--head-start", arguments_.head_start,
                 "Wait as if we had come so much earlier, 24h at most: whoever came after that is "
                 "passed (redis)");
    app.add_option(
           "--adopt", arguments_.adopt,
           "Take over the grant whose text (hold --export) is the first line of FILE, or of "
           "standard input (-)")
        ->type_name("FILE");
    auto* shared = app.add_flag(
        "-s,--shared", arguments_.shared,
        "In shared mode: beside other readers, never beside a writer, which is who leaves "
        "this out (zookeeper, redis, local)");
    const std::string exclusive = "In exclusive mode, which is the default";
    app.add_flag("-x", exclusive)->excludes(shared);
    app.add_option("--permits", arguments_.permits,
                   "So many permits of the semaphore NAME, which is no lock (default with --of: 1)")
        ->check(CLI::Range(1U, kMostPermits))
        ->excludes(shared)
        ->type_name("K");
    app.add_option("--of", arguments_.limit,
                   "How many permits the semaphore has: written into the store by who comes first, "
                   "then compared (default: as many as the store says)")
        ->check(CLI::Range(1U, kMostPermits))
        ->excludes(shared)
        ->type_name("N");
  }

  void add_run() {
    auto& app = add_verb("run", Verb::run,
                         "Run a command under a lock: dlock run NAME [OPTIONS] -- COMMAND "
                         "[ARGUMENT...]");
    add_name(app);
    add_acquire_options(app);
    app.add_option("-c", shell_command_, "A line for /bin/sh -c, instead of a command behind --")
        ->type_name("LINE");
    app.add_option("--on-lost", on_lost_,
                   "When the lock is being lost: term ends the command, warn only says so "
                   "(default: term)")
        ->check(CLI::IsMember({"term", "warn"}))
        ->type_name("term|warn");
    add_duration(app, "--kill-after", arguments_.kill_after,
                 "How long after SIGTERM a command that is still there gets SIGKILL, at the latest "
                 "when the lock is over (default: 5s)");
    add_duration(app, "--progress-every", arguments_.progress_every,
                 "The command must touch the file that DLOCK_PROGRESS names at least so often, or "
                 "the lock is lost: a command that hangs does not keep it for ever");
    app.add_option_function<std::string>(
           "--on-revoke",
           [this](const std::string& text) { arguments_.on_revoke = parse_signal(text); },
           "When somebody asks for the lock (dlock break --ask), the command gets this signal: "
           "TERM, INT, HUP, QUIT, USR1 or USR2 (default: nobody can ask)")
        ->type_name("SIGNAL");
    app.add_flag("--json", arguments_.json,
                 "Tell of a lock that is going in JSON lines on standard error");
    app.add_flag("--hide-command", arguments_.hide_command,
                 "Show ourselves as dlock to who looks for the holder, not as the command");
    app.add_flag("--nested", arguments_.nested,
                 "If an outer dlock run holds this lock, run the command under that one");
    add_leader(app);
    add_schedule(app);
  }

  void add_leader(CLI::App& app) {
    app.add_flag("--leader", arguments_.leader,
                 "Run the command while we lead: when the lead is lost it is ended, and we stand "
                 "again; when it ends by itself, so do we");
    add_duration(app, "--retry", arguments_.retry,
                 "With --leader: how long to pause before standing again (default: 2s)");
  }

  void add_schedule(CLI::App& app) {
    add_duration(app, "--at-most-for", arguments_.at_most_for,
                 "A scheduled run, as of cron on many hosts: whoever comes while it runs, or after "
                 "it in the same tick, ends at once (-E says with what, default: 75). After this "
                 "long the command is ended; one that has died is followed by another");
    add_duration(app, "--at-least-for", arguments_.at_least_for,
                 "Nobody runs it again before this has passed since it began (default: 0)");
    add_duration(app, "--every", arguments_.every,
                 "Run it once per tick, by the store's clock, in UTC (default: no ticks, "
                 "--at-least-for keeps runs apart)");
    add_duration(
        app, "--offset", arguments_.offset,
        "Ticks are so long after the multiples of --every: 2h30m with --every 24h is daily "
        "at 02:30 UTC (default: 0)");
    add_duration(app, "--early", arguments_.early,
                 "A run that starts this long before a tick, or later, belongs to that tick; an "
                 "earlier one to the previous tick (default: a tenth of --every, at most 30s)");
    app.add_flag("--again", arguments_.again,
                 "Run it now, under the lock, although the tick was run; this run is not recorded "
                 "and uses no tick");
    app.add_flag("--retry-failed", arguments_.retry_failed,
                 "Repeat the tick if its run failed or took too long (default: exit 75)");
  }

  void add_hold() {
    auto& app = add_verb("hold", Verb::hold,
                         "Hold a lock until standard input closes or nothing reads standard "
                         "output, and print its events as JSON lines");
    add_name(app);
    add_acquire_options(app);
    auto* until =
        add_duration(app, "--for", arguments_.hold_for, "Give the lock back after this long");
    app.add_flag("--export", arguments_.exports,
                 "Take it for another process: print one line, by which that takes the grant over "
                 "(run --adopt), and keep it until then; the line is a secret")
        ->excludes(until);
    add_duration(app, "--within", arguments_.within,
                 "With --export: keep it so long at most (default: 30s)");
    add_json(app, "Changes nothing: hold prints JSON always");
  }

  void add_status() {
    auto& app = add_verb("status", Verb::status, "Who holds a lock and who waits for it");
    add_name(app);
    add_json(app);
  }

  void add_list() {
    auto& app = add_verb("list", Verb::list, "The locks below a prefix");
    app.add_option("PREFIX", arguments_.name,
                   "A lock name, for it and all below; or a pattern as in a route's match: x/*, "
                   "x/**")
        ->type_name("");
    add_json(app);
  }

  void add_break() {
    auto& app = add_verb("break", Verb::break_lock,
                         "Take a lock from its holder: it cannot renew the lock any more, and no "
                         "other client acquires it before the holder has ended");
    add_name(app);
    app.add_option("--token", arguments_.token,
                   "Only if it is still held with this token (see status)")
        ->check([](const std::string& text) {
          const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
          return is_number ? std::string() : "'" + text + "' is not a whole number";
        })
        ->type_name("N");
    auto* now = app.add_flag("--now", arguments_.now,
                             "Free the lock at once, although its holder may still work under it; "
                             "needed where the holder is another program or an older dlock");
    app.add_option("--reason", arguments_.reason,
                   "Why; the holder, its log and `dlock status` show it")
        ->type_name("TEXT");
    add_duration(app, "--wait", arguments_.wait,
                 "Wait so long at most until the lock is free; the mark stays, exit status 75 "
                 "(default: until it is free)")
        ->excludes(now);
    app.add_flag("--ask", arguments_.ask,
                 "Ask the holder to give it back, which it may do or not; --token is not needed");
    auto* permits = app.add_flag("--semaphore", arguments_.of_semaphore,
                                 "Take permits of the semaphore NAME from their holder, all that "
                                 "it took with that token (dlock semaphore show)");
    app.add_option("--holder", arguments_.holder,
                   "With --semaphore: from the holder with this id, instead of --token")
        ->needs(permits)
        ->type_name("ID");
    add_duration(app, "--within", arguments_.within,
                 "With --ask: wait so long for that, then take the lock from it");
    add_json(app, "Say in JSON what was done");
  }

  void add_doctor() {
    auto& app = add_verb("doctor", Verb::doctor, "Reach every store and say what it promises");
    add_json(app);
  }

  void add_semaphore() {
    auto* app = app_.add_subcommand("semaphore",
                                    "How many permits a semaphore has, and who has them (`run` and "
                                    "`hold` take some with --permits)");
    app->fallthrough();
    app->require_subcommand(1);
    app->footer("");
    const auto add = [&](const char* name, Verb verb, const char* help) -> CLI::App& {
      auto* part = app->add_subcommand(name, help);
      part->fallthrough();
      part->footer("");
      part->callback([this, verb] { arguments_.verb = verb; });
      part->add_option("NAME", arguments_.name, "The semaphore, for example printers")
          ->required()
          ->type_name("");
      add_json(*part);
      return *part;
    };
    add("show", Verb::semaphore_show, "Its limit, who holds permits and who waits for them");
    add("set", Verb::semaphore_set,
        "It has N permits from now on; nobody loses any, and who says another number is refused")
        .add_option("N", arguments_.limit, "How many permits there are")
        ->required()
        ->check(CLI::Range(1U, kMostPermits))
        ->type_name("");
  }

  void add_migrate() {
    auto* app = app_.add_subcommand(
        "migrate", "Move locks that are in use from one store to another (docs/migration.md)");
    app->fallthrough();
    app->require_subcommand(1);
    app->footer(
        "The stores are those of the configuration's route `migrate: { from: zk, to: redis, plan: "
        "PLAN }`.\nA source that may forget (Memcached, Redis as installed) needs `gate: STORE` as "
        "well: the target, or a third store, which forgets nothing.\nIn order: plan, start, "
        "advance; then rollback, or finish. Each may be repeated at any time, on any host.\n"
        "Exit status: 0 done, 3 waits for a holder, or for you (run it again), 4 refused, with the "
        "reason.");
    auto& plan = add_step(*app, "plan", Verb::migrate_plan,
                          "Check stores and names, and say what start would write");
    auto& start = add_step(*app, "start", Verb::migrate_start,
                           "Publish the plan in both stores; no lock moves yet");
    for (auto* step : {&plan, &start}) {
      add_duration(*step, "--max-lease", arguments_.max_lease,
                   "The longest lease in the target (default: the store's)");
      add_duration(*step, "--gate-lease", arguments_.gate_lease,
                   "With a gate: how long a program relies on a reading of it, 500ms to 10m "
                   "(default: 10s)");
    }
    start.add_flag("--yes", arguments_.yes,
                   "Also with programs that lock in the source without the plan's route (`plan` "
                   "names them)");
    start
        .add_option(
            "--at", arguments_.at,
            "Restore a gate that was lost: the locks are in the source (S) or in the target "
            "(T) alone. No program acquires one for a gate lease, which it waits")
        ->check(CLI::IsMember({"S", "T"}))
        ->type_name("S|T");
    add_duration(start, "--wait", arguments_.wait,
                 "With --at: how long to wait for that (default: 30s)", true);
    add_step(*app, "status", Verb::migrate_status,
             "How it stands: who holds what where, who lags behind, what comes next");
    auto& advance = add_step(*app, "advance", Verb::migrate_advance,
                             "Move locks to the target; ends a rollback that is under way");
    add_names(advance);
    auto& rollback =
        add_step(*app, "rollback", Verb::migrate_rollback, "Move locks back to the source");
    add_names(rollback);
    advance.add_flag(
        "--legacy-gone", arguments_.legacy_gone,
        "With a gate: no program is left that locks without the plan's route (`status` "
        "lists those that it sees)");
    rollback.add_flag("--target-gone", arguments_.target_gone,
                      "The target is dead for good, and you have stopped it: do not ask it, wait "
                      "the longest lease instead");
    rollback.add_flag("--withdraw", arguments_.withdraw,
                      "With --all: end the plan when all locks are back");
    auto& finish = add_step(*app, "finish", Verb::migrate_finish,
                            "For good: no way back; the target is the locks' home");
    add_all(finish);
    add_wait(finish);
    finish.add_flag("--yes", arguments_.yes,
                    "Programs that lock in the source without the plan's route have been stopped, "
                    "or will be: nothing keeps them from a lock afterwards");
  }

  CLI::App& add_step(CLI::App& migrate, const char* name, Verb verb, const char* help) {
    auto* app = migrate.add_subcommand(name, help);
    app->fallthrough();
    app->footer("");
    app->callback([this, verb] { arguments_.verb = verb; });
    app->add_option("PLAN", arguments_.plan, "The plan, as the configuration names it")
        ->required()
        ->type_name("");
    add_json(*app);
    return *app;
  }

  void add_names(CLI::App& app) {
    auto* all = add_all(app);
    app.add_option("--name", arguments_.names, "This lock; may be given several times")
        ->excludes(all)
        ->type_name("NAME");
    add_wait(app);
  }

  CLI::Option* add_all(CLI::App& app) {
    return app.add_flag("--all", arguments_.all, "Every lock of the plan");
  }

  void add_wait(CLI::App& app) {
    add_duration(app, "--wait", arguments_.wait,
                 "How long to wait for holders, or for programs to read the gate; 0 looks once "
                 "(default: 30s)",
                 true);
  }

  void check(bool has_dashes) {
    if (!arguments_.config_file.empty() && !arguments_.store_url.empty()) {
      throw CLI::ValidationError("--config", "--store stands beside it; give one of them");
    }
    if (shell_command_) {
      if (has_dashes) throw CLI::ValidationError("-c", "a command follows --; keep one of them");
      arguments_.command = {"/bin/sh", "-c", *shell_command_};
    }
    if (arguments_.verb == Verb::run && arguments_.command.empty()) {
      throw CLI::ValidationError(
          "run", has_dashes ? "there is no command behind --"
                            : "there is no command; write: dlock run NAME -- COMMAND ARGUMENT...");
    }
    if (arguments_.verb != Verb::run && has_dashes) {
      throw CLI::ValidationError("--", "only `run` takes a command");
    }
    if (arguments_.withdraw && !arguments_.all) {
      throw CLI::ValidationError("--withdraw", "a plan is withdrawn as a whole; add --all");
    }
    if (arguments_.gate_lease && (*arguments_.gate_lease < std::chrono::milliseconds(500) ||
                                  *arguments_.gate_lease > std::chrono::minutes(10))) {
      throw CLI::ValidationError(
          "--gate-lease",
          fmt::format("'{}': write 500ms to 10m", format_duration(*arguments_.gate_lease)));
    }
    if (arguments_.of_semaphore && arguments_.ask) {
      throw CLI::ValidationError("--ask", "of locks only; who has permits is not asked for them");
    }
    if (arguments_.of_semaphore && (arguments_.token == 0) == arguments_.holder.empty()) {
      throw CLI::ValidationError(
          "--semaphore", "add --token or --holder, one of them (dlock semaphore show says both)");
    }
    if (arguments_.verb == Verb::break_lock && !arguments_.ask && !arguments_.of_semaphore &&
        arguments_.token == 0) {
      throw CLI::ValidationError("--token", "--token is required (dlock status says it), or --ask");
    }
    constexpr std::size_t kLongestReason = 200;
    if (arguments_.reason.size() > kLongestReason) {
      throw CLI::ValidationError("--reason", fmt::format("{} bytes: write at most {}",
                                                         arguments_.reason.size(), kLongestReason));
    }
    if (arguments_.ask && arguments_.now) {
      throw CLI::ValidationError("--now", "it frees the lock at once; leave out --ask");
    }
    if (arguments_.within && !arguments_.ask && !arguments_.exports) {
      throw CLI::ValidationError("--within", arguments_.verb == Verb::hold
                                                 ? "it is of --export; add that"
                                                 : "it is of --ask; add that");
    }
    const bool is_plain = !arguments_.shared && !arguments_.permits && !arguments_.limit;
    if (arguments_.exports && !is_plain) {
      throw CLI::ValidationError("--export", "of an exclusive lock only");
    }
    const bool may_adopt = is_plain && !arguments_.leader && !arguments_.at_most_for &&
                           !arguments_.nested && !arguments_.max_queue && !arguments_.head_start;
    if (!arguments_.adopt.empty() && !may_adopt) {
      throw CLI::ValidationError("--adopt",
                                 "the grant is an exclusive lock's, and there already; leave out "
                                 "what is of readers, permits, queues, leaders and schedules");
    }
    for (const auto& [name, value] : {std::pair("--max-hold", arguments_.max_hold),
                                      std::pair("--progress-every", arguments_.progress_every)}) {
      if (value && value->count() == 0) throw CLI::ValidationError(name, "'0': write 1ms or more");
    }
    if (arguments_.lease && arguments_.lease->count() == 0) {
      throw CLI::ValidationError("--lease", "'0': write 1ms or more");
    }
    const bool takes_permits = arguments_.verb == Verb::run || arguments_.verb == Verb::hold;
    if (takes_permits && arguments_.limit && !arguments_.permits) arguments_.permits = 1;
    if (arguments_.permits && arguments_.nested) {
      throw CLI::ValidationError("--nested", "permits are not nested; leave it out");
    }
    if (arguments_.permits && *arguments_.permits > arguments_.limit.value_or(kMostPermits)) {
      throw CLI::ValidationError("--permits", fmt::format("{} of {}: there are not so many",
                                                          *arguments_.permits, *arguments_.limit));
    }
    arguments_.on_lost = on_lost_ == "warn" ? OnLost::warn : OnLost::terminate;
    check_kind_of_run();
  }

  void check_kind_of_run() const {
    const auto& all = arguments_;
    const auto refuse = [](const char* option, const char* why) {
      throw CLI::ValidationError(option, why);
    };
    if (!all.at_most_for) {
      const char* needs = "only of a scheduled run; add --at-most-for, how long it may take";
      if (all.at_least_for) refuse("--at-least-for", needs);
      if (all.every) refuse("--every", needs);
      if (all.offset) refuse("--offset", needs);
      if (all.early) refuse("--early", needs);
      if (all.again) refuse("--again", needs);
      if (all.retry_failed) refuse("--retry-failed", needs);
    }
    if (all.retry && !all.leader) refuse("--retry", "only of a leader; add --leader");
    if (!all.leader && !all.at_most_for) return;
    const char* const kind = all.leader ? "--leader" : "--at-most-for";
    if (all.leader && all.at_most_for) {
      refuse(kind, "a leader runs its command all the time; leave --at-most-for out");
    }
    if (all.permits) refuse(kind, "one alone runs the command; leave --permits and --of out");
    if (all.shared) refuse(kind, "one alone runs the command; leave --shared out");
    if (all.nested) refuse(kind, "leave --nested out, or `run` without it around the command");
    if (all.on_lost == OnLost::warn) {
      refuse(kind, "without the lock another runs the command, too; leave --on-lost out");
    }
    if (all.at_most_for && all.wait) {
      refuse(kind, "a second run exits at once; remove --wait, -w and -n");
    }
    if (all.at_most_for && all.max_hold)
      refuse(kind, "it bounds the run already; leave --max-hold out");
    if (all.at_most_for &&
        (all.progress_every || all.max_queue || all.head_start || all.on_revoke != 0)) {
      refuse(kind,
             "a scheduled run has no --progress-every, --max-queue, --head-start or --on-revoke; "
             "leave them out");
    }
    check_times(kind);
  }

  void check_times(const char* kind) const {
    LeaderTimes times;
    times.lease = arguments_.lease;
    times.retry = arguments_.retry;
    auto wrong = arguments_.leader ? refused(times) : refused(schedule_options(arguments_));
    if (wrong.empty()) return;
    // As a rule it begins with the name of the option, and its value.
    const auto colon = std::min(wrong.find(": "), wrong.size());
    const auto option = "--" + wrong.substr(0, std::min(wrong.find(' '), colon));
    if (colon == wrong.size() || program::innermost(app_)->get_option_no_throw(option) == nullptr) {
      throw CLI::ValidationError(kind, std::move(wrong));
    }
    throw CLI::ValidationError("--" + wrong.substr(0, colon), wrong.substr(colon + 2));
  }

  CLI::App app_{"dlock: one lock for many processes, on the store of your choice"};
  Arguments arguments_;
  std::string on_lost_ = "term";
  std::optional<std::string> shell_command_;  ///< the line of `run -c`
};

}  // namespace

ScheduleOptions schedule_options(const Arguments& arguments) {
  ScheduleOptions options;
  options.at_most_for = arguments.at_most_for.value_or(Milliseconds(0));
  options.at_least_for = arguments.at_least_for.value_or(Milliseconds(0));
  options.every = arguments.every;
  options.offset = arguments.offset.value_or(Milliseconds(0));
  options.early = arguments.early;
  options.again = arguments.again;
  options.retry_failed = arguments.retry_failed;
  options.lease = arguments.lease;
  return options;
}

ParsedArguments parse_arguments(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace dlock::cli
