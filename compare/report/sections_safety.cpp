// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compare/report/blocks.hpp"
#include "compare/suite/scenario.hpp"

namespace dlock::compare::report {

namespace {

std::string text(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

std::optional<double> number(const object& result, const char* name) {
  const auto* values = result.if_contains("values");
  const auto* value = values == nullptr ? nullptr : values->as_object().if_contains(name);
  if (value == nullptr) return std::nullopt;
  return value->to_number<double>();
}

std::string milliseconds_or_dash(const object& result, const char* name) {
  const auto value = number(result, name);
  return value ? show(*value, "ms") : "-";
}

bool is_peers(const object& result) { return result.at("kind").as_string() == "peer"; }

std::string joined(const boost::json::array& texts) {
  std::string all;
  for (const auto& one : texts) all += (all.empty() ? "" : "; ") + std::string(one.as_string());
  return all;
}

/// Another client made us no promise: what was seen, and what it did not come to.
object peers_verdict(const object& result) {
  const bool twice = number(result, "double_grants").value_or(0) > 0;
  const auto missed = joined(result.at("missed").as_array());
  const std::string seen = twice ? "two holders" : "one holder";
  if (missed.empty()) return cell(seen, twice ? "warn" : "good");
  return cell(seen + "; " + missed, "warn");
}

object verdict(const object& result) {
  if (result.contains("failed")) return cell("not measured: " + text(result, "failed"), "bad");
  if (is_peers(result)) return peers_verdict(result);
  const auto& found = result.at("contradictions").as_array();
  if (!found.empty()) return cell("contradicts: " + joined(found), "bad");
  const auto& broken = result.at("broken_assumptions").as_array();
  const bool twice = number(result, "double_grants").value_or(0) > 0;
  if (!broken.empty()) {
    return cell(
        fmt::format("breaks {}; {}", joined(broken),
                    twice ? "two holders until the first was told" : "and held all the same"),
        twice ? "warn" : "good");
  }
  if (twice) return cell("two holders, as best effort allows", "warn");
  return cell("one holder", "good");
}

/// They came as they were ready.
std::vector<const object*> in_order_of_stores(const Figures& figures, const std::string& scenario) {
  std::vector<const object*> ordered;
  for (const auto& store : figures.raw().at("stores").as_array()) {
    for (const auto* kind : {"safety", "peer"}) {
      for (const auto* result : figures.results(kind, scenario, store.at("id").as_string())) {
        ordered.push_back(result);
      }
    }
  }
  return ordered;
}

object safety_section(const Runs& runs, const object& scenario) {
  array rows;
  for (const auto& run : runs) {
    for (const auto* result : in_order_of_stores(run.figures, text(scenario, "id"))) {
      array row;
      if (runs.size() > 1) row.push_back(cell(run.name));
      const auto count = [&](const char* name) {
        const auto value = number(*result, name);
        return cell(value ? fmt::format("{:.0f}", *value) : "-",
                    value.value_or(0) > 0 ? "warn" : "");
      };
      row.push_back(cell(title_of(run.figures, text(*result, "store")) +
                         (is_peers(*result) ? ", with " + text(*result, "driver") : "")));
      row.push_back(verdict(*result));
      row.push_back(count("double_grants"));
      row.push_back(cell(milliseconds_or_dash(*result, "overlap_ms")));
      row.push_back(count("stale_writes"));
      row.push_back(count("stale_writes_fenced"));
      row.push_back(cell(milliseconds_or_dash(*result, "told_ms")));
      row.push_back(cell(milliseconds_or_dash(*result, "granted_ms")));
      row.push_back(cell(milliseconds_or_dash(*result, "progress_ms")));
      row.push_back(cell(milliseconds_or_dash(*result, "wake_up_ms")));
      rows.push_back(std::move(row));
    }
  }
  array headers{"Store",
                "Outcome",
                "Double grants",
                "Overlap not told",
                "Stale writes, without fencing",
                "with fencing",
                "Fault to told",
                "Fault to next grant",
                "Heal to next grant",
                "Wake-up"};
  if (runs.size() > 1) headers.insert(headers.begin(), "Run");
  return section(text(scenario, "id"), text(scenario, "title"),
                 array{words(text(scenario, "words")), table(std::move(headers), std::move(rows))});
}

/// Scenarios down, stores across: where there were two holders at a moment.
object matrix(const Figures& figures) {
  array headers{"Fault"}, rows;
  const auto stores = stores_of(figures);
  for (const auto& store : stores) headers.push_back(boost::json::string(store.title));
  for (const auto& entry : scenarios("safety")) {
    const auto& scenario = entry.as_object();
    array row{cell(text(scenario, "title"))};
    bool any = false;
    for (const auto& store : stores) {
      const auto results = figures.results("safety", text(scenario, "id"), store.id);
      if (results.empty()) {
        row.push_back(cell(""));
        continue;
      }
      any = true;
      const object& result = *results.front();
      const auto judged = verdict(result);
      const auto twice = number(result, "double_grants").value_or(0) > 0;
      const auto* bad = judged.if_contains("tone");
      const std::string tone = bad == nullptr ? "" : std::string(bad->as_string());
      row.push_back(cell(result.contains("failed") ? "not measured"
                         : tone == "bad"           ? "contradiction"
                         : twice
                             ? fmt::format("two, {}", milliseconds_or_dash(result, "overlap_ms"))
                             : "one",
                         tone));
    }
    if (any) rows.push_back(std::move(row));
  }
  object all = table(std::move(headers), std::move(rows));
  all["terminal"] = true;
  return section(
      "safety", "Under faults: one holder or two",
      array{words("For how long a second client had the lock while the first, alive and "
                  "not told, still believed that it did. Servers and clients are real "
                  "processes, faults are real signals, cuts and restarts; leases are two "
                  "or three seconds. A best-effort store may have two; a contradiction of "
                  "what a store declares, under the assumptions that it names, fails the "
                  "run."),
            std::move(all)});
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
                         cell(std::to_string(row.at("ours").to_number<int>()), "good")});
  }
  blocks.push_back(
      object{{"kind", "chart"},
             {"type", "line"},
             {"title", "Notifications for one release"},
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
    if (runs.front().figures.results("safety", text(scenario, "id")).empty()) continue;
    if (std::exchange(first, false)) sections.push_back(matrix(runs.front().figures));
    sections.push_back(safety_section(runs, scenario));
  }
}

void add_pitfalls(const Figures& figures, array& sections) {
  array rows, blocks;
  for (const auto& entry : scenarios("pitfalls")) {
    const auto& scenario = entry.as_object();
    for (const auto* result : figures.results("pitfall", text(scenario, "id"))) {
      array row{cell(text(scenario, "title")), cell(title_of(figures, text(*result, "store"))),
                cell(text(scenario, "words"))};
      if (result->contains("failed")) {
        row.push_back(cell("not measured: " + text(*result, "failed"), "bad"));
        row.push_back(cell(""));
      } else if (result->contains("herd")) {
        const auto& last = result->at("herd").as_array().back();
        row.push_back(
            cell(fmt::format("{} notifications for {} waiters", last.at("naive").to_number<int>(),
                             last.at("waiters").to_number<int>()),
                 "warn"));
        row.push_back(cell(fmt::format("{} notification(s): {}", last.at("ours").to_number<int>(),
                                       text(scenario, "cure")),
                           "good"));
      } else {
        const auto& naive = result->at("naive").as_object();
        const auto& ours = result->at("ours").as_object();
        row.push_back(cell(fmt::format("{}: {}", yes_no(naive), text(scenario, "happens")),
                           naive.at("happened").as_bool() ? "warn" : "bad"));
        row.push_back(cell(fmt::format("{}: {}", yes_no(ours), text(scenario, "cure")),
                           ours.at("happened").as_bool() ? "bad" : "good"));
      }
      rows.push_back(std::move(row));
    }
    for (const auto* result : figures.results("pitfall", text(scenario, "id"))) {
      if (result->contains("herd")) blocks.push_back(herd_blocks(*result, blocks));
    }
  }
  if (rows.empty()) return;
  blocks.insert(blocks.begin(), table(array{"Pitfall", "Store", "What was done", "The usual way",
                                            "dlock, same fault"},
                                      std::move(rows)));
  blocks.insert(blocks.begin(),
                words("Locks as they are written by hand, run on real servers until the flaw "
                      "shows; then dlock under the same fault."));
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
      return found ? show(found->value, unit) : std::string("-");
    };
  };
  const auto after = [&](const char* scenario, const char* value) {
    return [&figures, scenario, value](const StoreRow& store) {
      const auto results = figures.results("safety", scenario, store.id);
      return results.empty() ? std::string("-") : milliseconds_or_dash(*results.front(), value);
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
  return section("trade-offs", "The trade-offs, measured",
                 array{words("Times of recovery are with the short leases of the safety scenarios: "
                             "two seconds (ZooKeeper's session, Redis), three (Memcached)."),
                       std::move(all)});
}

}  // namespace dlock::compare::report
