// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/ways.hpp"

#include <fmt/format.h>

namespace dlock::simulation {
namespace {

bool can_be(const Kind& kind, const Way& way) {
  World world(1);
  Network network(world);
  const auto store = kind.make(world, network, way.exclusive);
  if (store == nullptr) return false;
  if (way.permits) return store->descriptor().has_permits;
  if (way.exports) return store->descriptor().has_adoption;
  if (way.cached) return kind.name == "redis" || kind.name == "local";
  return !way.readers || store->descriptor().has_shared_mode;
}

bool is_asked(const std::string& asked, std::string_view name) {
  return asked == "all" || asked == name;
}

}  // namespace

std::string mode_name(const Way& way) {
  if (way.permits) return "permits";
  if (way.exports) return "exports";
  if (way.several) return "several";
  if (way.cached) return "cached";
  return way.readers ? "readers" : way.exclusive ? "exclusive" : "as-installed";
}

std::string title(const Kind& kind, const Way& way) {
  const auto with = way.with == nullptr ? "" : fmt::format(" with {}", way.with->name);
  return fmt::format("{}{} ({})", kind.name, with, mode_name(way));
}

std::string options_of(const Kind& kind, const Way& way) {
  const auto with = way.with == nullptr ? "" : fmt::format(" --with {}", way.with->name);
  return fmt::format("--store {}{} --mode {}", kind.name, with, mode_name(way));
}

std::vector<Choice> choices(const std::string& store, const std::string& mode,
                            const std::string& with) {
  std::vector<Choice> all;
  for (const auto& kind : kinds()) {
    if (!is_asked(store, kind.name)) continue;
    if (!with.empty()) {
      for (const auto& second : kinds()) {
        const Way way{.several = true, .with = &second};
        const bool may = &second != &kind && is_asked(mode, "several");
        if (may && is_asked(with, second.name)) all.push_back({&kind, way});
      }
      continue;
    }
    for (const Way& way :
         {Way{}, Way{.exclusive = false}, Way{.readers = true}, Way{.permits = true},
          Way{.exports = true}, Way{.several = true}, Way{.cached = true}}) {
      if (is_asked(mode, mode_name(way)) && can_be(kind, way)) all.push_back({&kind, way});
    }
  }
  return all;
}

std::vector<Choice> pairs() {
  std::vector<Choice> all;
  const auto& stores = kinds();
  for (std::size_t at = 0; at < stores.size() && stores.size() > 1; ++at) {
    all.push_back({&stores[at], Way{.several = true, .with = &stores[(at + 1) % stores.size()]}});
  }
  return all;
}

}  // namespace dlock::simulation
