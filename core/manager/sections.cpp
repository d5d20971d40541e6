// SPDX-License-Identifier: Apache-2.0
#include "core/manager/sections.hpp"

#include <fmt/format.h>

#include "core/config/fail.hpp"
#include "core/config/sections.hpp"
#include "core/manager/engine.hpp"
#include "core/manager/manager_access.hpp"

namespace dlock::core {

namespace {

/// Returns why its store, or its route, cannot have that type; empty: it can.
std::string missing_kind(const Engine& engine, const Section& section) {
  if (section.type == LockType::mutex || section.type == LockType::multi) return {};
  const auto& route = engine.route(section.lock);
  const auto type = type_name(section.type);
  if (other_store(route) != nullptr) {
    return fmt::format(
        "type {}: the route of '{}' has `migrate`, and a migration moves exclusive "
        "locks only; write type: mutex, or route the name elsewhere",
        type, section.lock);
  }
  const auto& backend = *engine.setup_of(route.store).descriptor;
  if (section.type == LockType::semaphore) {
    if (backend.has_permits && route.max_queue) {
      return fmt::format(
          "type {}: the route of '{}' has max_queue, which is of locks only; use a separate route "
          "without it for the semaphore",
          type, section.lock);
    }
    if (backend.has_permits) return {};
    return fmt::format(
        "type {}: {} store '{}' has no semaphores: {}; route '{}' to a store that "
        "has them",
        type, backend.name, route.store, backend.why_no_permits, section.lock);
  }
  if (backend.has_shared_mode) return {};
  return fmt::format(
      "type {}: {} store '{}' has no readers; write type: mutex, or route '{}' to a "
      "store that has them",
      type, backend.name, route.store, section.lock);
}

/// Returns why it cannot be on these stores; empty: it can. Throws as Engine::route().
std::string refused_section(const Engine& engine, const Section& section) {
  auto wrong = section_error(section);
  return wrong.empty() ? missing_kind(engine, section) : wrong;
}

/// Throws as Engine::route().
void check_routes(const Engine& engine, const Section& section) {
  if (section.type != LockType::multi) engine.route(section.lock);
  for (const auto& lock : section.locks) engine.route(lock);
}

}  // namespace

Sections::Sections(const std::vector<SectionConfig>& all) {
  for (const auto& each : all) {
    auto section = each.section;
    if (section.type != LockType::multi && section.lock.empty()) section.lock = each.name;
    if (all_.emplace(each.name, Entry{std::move(section), each.origin}).second) continue;
    fail_config(each.origin, {}, fmt::format("section '{}' is there twice; keep one", each.name));
  }
}

const Section* Sections::find(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second.section;
}

void Sections::check(const Engine& engine) const {
  for (const auto& [name, entry] : all_) {
    std::string wrong;
    try {
      check_routes(engine, entry.section);
      wrong = refused_section(engine, entry.section);
    } catch (const LockError& error) {
      wrong = fmt::format("lock '{}': {}", error.lock(), error.server_text());
    }
    if (wrong.empty()) continue;
    fail_config(entry.origin, {}, fmt::format("section '{}': {}", name, wrong));
  }
}

Section section_named(LockManager& manager, std::string name) {
  const auto engine = detail::ManagerAccess::engine(manager);
  if (const auto* const configured = engine->sections().find(name)) return *configured;
  Section section;
  section.lock = std::move(name);
  return section;
}

std::shared_ptr<DistributedLock> lock_of(LockManager& manager, const Section& section) {
  const auto engine = detail::ManagerAccess::engine(manager);
  if (auto wrong = refused_section(*engine, section); !wrong.empty()) {
    throw LockError(make_error_code(errc::invalid_argument), {section.lock, {}, std::move(wrong)});
  }
  if (section.type == LockType::multi) return manager.lock_all(section.locks);
  if (section.type != LockType::semaphore) return manager.lock(section.lock);
  return manager.semaphore(section.lock, section.limit).permits(section.permits.value_or(1));
}

}  // namespace dlock::core
