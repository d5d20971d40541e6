// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <utility>

#include "compare/report/blocks.hpp"
#include "compare/suite/scenario.hpp"

namespace dlock::compare::report {

namespace {

/// The tries of a scenario on a store, by dlock or another client.
struct Row {
  std::string store;
  std::string driver;  ///< empty: dlock
  Tries tries;
};

/// A median; with its own number of samples where not every try has one.
std::string milliseconds_or_dash(const Tries& tries, const char* name) {
  const auto median = tries.median(name);
  if (!median) return "-";
  const auto said = show(median->value, "ms");
  return median->samples == tries.measured() ? said
                                             : fmt::format("{} (n {})", said, median->samples);
}

/// "3 tries", "2 of 3 tries".
std::string of_tries(std::size_t some, const Tries& tries) {
  return fmt::format("{} of {}", some, show_tries(tries.measured()));
}

/// Nothing happened, in so many tries; few of them prove little.
object nothing_seen(const std::string& said, const Tries& tries) {
  return cell(said, tries.measured() >= kEnough ? "good" : "thin");
}

std::string holders(const Tries& tries) {
  const auto twice = tries.with("double_grants");
  return twice > 0 ? "two holders in " + of_tries(twice, tries)
                   : "one holder in " + show_tries(tries.measured());
}

/// Another client made us no promise: what was seen, and what it did not come to.
object peers_verdict(const Tries& tries) {
  const auto missed = tries.texts("missed");
  if (!missed.empty()) return cell(holders(tries) + "; " + missed, "warn");
  return tries.with("double_grants") > 0 ? cell(holders(tries), "warn")
                                         : nothing_seen(holders(tries), tries);
}

object verdict(const Row& row) {
  const auto& tries = row.tries;
  if (tries.failed() > 0) {
    return cell(fmt::format("not measured in {} of {}: {}", tries.failed(),
                            show_tries(tries.failed() + tries.measured()), tries.why_failed()),
                "bad");
  }
  if (!row.driver.empty()) return peers_verdict(tries);
  if (const auto found = tries.with_texts("contradictions")) {
    return cell(
        fmt::format("contradicts in {}: {}", of_tries(found, tries), tries.texts("contradictions")),
        "bad");
  }
  const bool twice = tries.with("double_grants") > 0;
  const auto broken = tries.texts("broken_assumptions");
  if (!broken.empty()) {
    const auto said = fmt::format("breaks {}; {}", broken, holders(tries));
    return twice ? cell(said + ", until the first was told", "warn")
                 : nothing_seen(said + " all the same", tries);
  }
  if (twice) return cell(holders(tries) + ", as best effort allows", "warn");
  return nothing_seen(holders(tries), tries);
}

/// Results came as they were ready.
std::vector<Row> in_order_of_stores(const Figures& figures, const std::string& scenario) {
  std::vector<Row> ordered;
  for (const auto& store : figures.raw().at("stores").as_array()) {
    const std::string id(store.at("id").as_string());
    const auto ours = figures.results("safety", scenario, id);
    if (!ours.empty()) ordered.push_back({id, "", Tries(ours)});
    std::map<std::string, std::vector<const object*>> peers;
    for (const auto* result : figures.results("peer", scenario, id)) {
      peers[text_at(*result, "driver")].push_back(result);
    }
    for (auto& [driver, results] : peers) ordered.push_back({id, driver, Tries(results)});
  }
  return ordered;
}

array safety_row(const Figures& figures, const Row& of) {
  const auto& tries = of.tries;
  const auto count = [&](const char* name) {
    const double value = tries.sum(name);
    return cell(tries.measured() == 0 ? "-" : fmt::format("{:.0f}", value),
                value > 0 ? "warn" : "");
  };
  const bool any = tries.measured() > 0;
  return {cell(title_of(figures, of.store) + (of.driver.empty() ? "" : ", with " + of.driver)),
          verdict(of),
          cell(fmt::format("{} ({:.0f})", tries.measured(), tries.sum("grants"))),
          count("double_grants"),
          cell(any ? show(tries.most("overlap_ms"), "ms") : "-"),
          count("stale_writes"),
          count("stale_writes_fenced"),
          cell(milliseconds_or_dash(tries, "told_ms")),
          cell(milliseconds_or_dash(tries, "granted_ms")),
          cell(milliseconds_or_dash(tries, "progress_ms")),
          cell(milliseconds_or_dash(tries, "wake_up_ms"))};
}

object safety_section(const Runs& runs, const object& scenario) {
  array rows;
  for (const auto& run : runs) {
    for (const auto& one : in_order_of_stores(run.figures, text_at(scenario, "id"))) {
      array row = safety_row(run.figures, one);
      if (runs.size() > 1) row.insert(row.begin(), cell(run.name));
      rows.push_back(std::move(row));
    }
  }
  array headers{"Store",
                "Outcome",
                "Tries (grants)",
                "Double grants",
                "Overlap not told, longest",
                "Stale writes, without fencing",
                "with fencing",
                "Fault to told",
                "Fault to next grant",
                "Heal to next grant",
                "Wake-up"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  return section(text_at(scenario, "id"), text_at(scenario, "title"),
                 array{words(text_at(scenario, "words") +
                             " Times are medians over the tries, or over n of them."),
                       table(std::move(headers), std::move(rows))});
}

object matrix_cell(const Tries& tries) {
  if (tries.empty()) return cell("");
  const auto judged = verdict({"", "", tries});
  const auto* tone = judged.if_contains("tone");
  const std::string tone_text = tone == nullptr ? "" : std::string(tone->as_string());
  const auto twice = tries.with("double_grants");
  std::string said;
  if (tries.failed() > 0) {
    said = fmt::format("not measured, {} of {}", tries.failed(), tries.failed() + tries.measured());
  } else if (const auto found = tries.with_texts("contradictions")) {
    said = fmt::format("contradiction, {} of {}", found, tries.measured());
  } else if (twice > 0) {
    said = fmt::format("two in {} of {}, {}", twice, tries.measured(),
                       show(tries.most("overlap_ms"), "ms"));
  } else {
    said = fmt::format("one in {}", tries.measured());
  }
  return cell(said, tone_text);
}

/// Scenarios down, stores across: where there were two holders at a moment.
object matrix(const Figures& figures) {
  array headers{"Fault"}, rows;
  const auto stores = stores_of(figures);
  for (const auto& store : stores) headers.push_back(boost::json::string(store.title));
  for (const auto& entry : scenarios("safety")) {
    const auto& scenario = entry.as_object();
    if (figures.results("safety", text_at(scenario, "id")).empty()) continue;
    array row{cell(text_at(scenario, "title"))};
    for (const auto& store : stores) {
      row.push_back(
          matrix_cell(Tries(figures.results("safety", text_at(scenario, "id"), store.id))));
    }
    rows.push_back(std::move(row));
  }
  return section(
      "safety", "Under faults: one holder or two",
      array{words("In how many tries there was one holder, or for how long at most a second client "
                  "had the lock while the first, alive and "
                  "not told, still believed that it did. Servers and clients are real "
                  "processes, faults are real signals, cuts and restarts; leases are two "
                  "or three seconds. A best-effort store may have two; a contradiction of "
                  "what a store declares, under the assumptions that it names, fails the "
                  "run. One holder in fewer than 30 tries is grey: 3 tries leave 63 % possible."),
            on_terminal(table(std::move(headers), std::move(rows)))});
}

std::string yes_no(const object& part) {
  return part.at("happened").as_bool() ? "it happens" : "it does not";
}

object herd_blocks(const object& result, array& blocks) {
  array labels, naive, ours, rows;
  for (const auto& row : result.at("herd").as_array()) {
    labels.push_back(row.at("waiters"));
    naive.push_back(row.at("naive"));
    ours.push_back(row.at("ours"));
    rows.push_back(array{cell(std::to_string(row.at("waiters").to_number<int>())),
                         cell(std::to_string(row.at("naive").to_number<int>()), "warn"),
                         cell(std::to_string(row.at("ours").to_number<int>()))});
  }
  blocks.push_back(
      object{{"kind", "chart"},
             {"type", "line"},
             {"title", "Notifications for one release, counted once"},
             {"unit", ""},
             {"x", "waiters"},
             {"log", true},
             {"labels", std::move(labels)},
             {"sets", array{object{{"label", "all watch one node"}, {"data", std::move(naive)}},
                            object{{"label", "dlock"}, {"data", std::move(ours)}}}}});
  return table(array{"Waiters", "All watch one node", "dlock"}, std::move(rows));
}

}  // namespace

void add_safety(const Runs& runs, array& sections) {
  bool first = true;
  for (const auto& entry : scenarios("safety")) {
    const auto& scenario = entry.as_object();
    if (runs.front().figures.results("safety", text_at(scenario, "id")).empty()) continue;
    if (std::exchange(first, false)) sections.push_back(matrix(runs.front().figures));
    sections.push_back(safety_section(runs, scenario));
  }
}

void add_pitfalls(const Figures& figures, array& sections) {
  array rows, blocks;
  for (const auto& entry : scenarios("pitfalls")) {
    const auto& scenario = entry.as_object();
    for (const auto* result : figures.results("pitfall", text_at(scenario, "id"))) {
      array row{cell(text_at(scenario, "title")),
                cell(title_of(figures, text_at(*result, "store"))),
                cell(text_at(scenario, "words"))};
      if (result->contains("failed")) {
        row.push_back(cell("not measured: " + text_at(*result, "failed"), "bad"));
        row.push_back(cell(""));
      } else if (result->contains("herd")) {
        const auto& last = result->at("herd").as_array().back();
        row.push_back(
            cell(fmt::format("{} notifications for {} waiters", last.at("naive").to_number<int>(),
                             last.at("waiters").to_number<int>()),
                 "warn"));
        row.push_back(cell(fmt::format("{} notification(s): {}", last.at("ours").to_number<int>(),
                                       text_at(scenario, "cure"))));
      } else {
        const auto& naive = result->at("naive").as_object();
        const auto& ours = result->at("ours").as_object();
        row.push_back(cell(fmt::format("{}: {}", yes_no(naive), text_at(scenario, "happens")),
                           naive.at("happened").as_bool() ? "warn" : "bad"));
        row.push_back(cell(fmt::format("{}: {}", yes_no(ours), text_at(scenario, "cure")),
                           ours.at("happened").as_bool() ? "bad" : ""));
      }
      rows.push_back(std::move(row));
    }
    for (const auto* result : figures.results("pitfall", text_at(scenario, "id"))) {
      if (result->contains("herd")) blocks.push_back(herd_blocks(*result, blocks));
    }
  }
  if (rows.empty()) return;
  blocks.insert(blocks.begin(), table(array{"Pitfall", "Store", "What was done",
                                            "The usual way, 1 try", "dlock, same fault, 1 try"},
                                      std::move(rows)));
  blocks.insert(
      blocks.begin(),
      words("Locks as they are written by hand, run on real servers until the flaw "
            "shows; then dlock under the same fault. Each once: a flaw is shown, not counted."));
  sections.push_back(section("pitfalls", "Pitfalls, shown happening", std::move(blocks)));
}

object trade_offs(const Figures& figures) {
  const auto stores = stores_of(figures);
  array headers{""}, rows;
  for (const auto& store : stores) headers.push_back(boost::json::string(store.title));
  const auto add = [&](const char* what, auto&& value) {
    array row{cell(what)};
    bool any = false;
    for (const auto& store : stores) {
      const std::string said = value(store);
      any = any || said != "-";
      row.push_back(cell(said));
    }
    if (any) rows.push_back(std::move(row));
  };
  const auto figure = [&](std::string_view scenario, std::string_view metric,
                          std::string_view unit) {
    return [&figures, scenario, metric, unit](const StoreRow& store) {
      const auto params = figures.params(scenario);
      if (params.empty()) return std::string("-");
      const auto found = figures.figure({scenario, store.id, "dlock", params.back()}, metric);
      return with_samples(found, unit);
    };
  };
  const auto after = [&](const char* scenario, const char* value) {
    return [&figures, scenario, value](const StoreRow& store) {
      const Tries tries(figures.results("safety", scenario, store.id));
      const auto median = tries.median(value);
      return median ? fmt::format("{} (n {})", show(median->value, "ms"), median->samples)
                    : std::string("-");
    };
  };
  const auto declared = [](const char* field) {
    return [field](const StoreRow& store) {
      return std::string(store.description->at("declared").at(field).as_string());
    };
  };
  add("Guarantee", [](const StoreRow& store) {
    return store.description->at("declared").at("guarantee") == "exclusive"
               ? std::string("exclusive")
               : std::string("best effort");
  });
  add("It rests on", [](const StoreRow& store) {
    std::string all;
    for (const auto& one : store.description->at("declared").at("assumptions").as_array()) {
      all += (all.empty() ? "" : ", ") + std::string(one.at(0).as_string());
    }
    return all;
  });
  add("Order", [](const StoreRow& store) {
    return store.description->at("declared").at("fair").as_bool() ? std::string("first come")
                                                                  : std::string("none");
  });
  add("Fencing token", [](const StoreRow& store) {
    return strength(store.description->at("declared").as_object());
  });
  add("Waiters learn by", declared("wake_up"));
  add("Lock and unlock, median", figure("speed.uncontended", "pair_p50_us", "µs"));
  add("Locks a second, many clients", figure("speed.own_locks", "pairs_per_s", "/s"));
  add("Hand-over, median", figure("speed.hand_over", "handover_p50_us", "µs"));
  add("Fairness (Jain)", figure("speed.hand_over", "jain", ""));
  add("Memory for 1,000 waiters", figure("speed.waiters", "memory_mb", "MB"));
  add("Client CPU for 1,000 held, 3 s leases", figure("speed.holders", "cpu_percent", "%"));
  add("Free again after the holder was killed", after("safety.holder_killed", "granted_ms"));
  add("Holder told after it was cut off", after("safety.holder_partitioned", "told_ms"));
  add("Next grant after the server came back", after("safety.server_restarted", "progress_ms"));
  add("Runs as", [](const StoreRow& store) {
    return std::string(store.description->at("words").as_string());
  });
  object all = table(std::move(headers), std::move(rows));
  return section(
      "trade-offs", "The trade-offs, measured",
      array{words("Times of recovery are with the short leases of the safety scenarios: "
                  "two seconds (ZooKeeper's session, Redis), three (Memcached). All are medians; n "
                  "is the number of samples."),
            std::move(all)});
}

}  // namespace dlock::compare::report
