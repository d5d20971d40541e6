// SPDX-License-Identifier: Apache-2.0
//
// An exported grant of another process: acquiring it adopts it. An error in its text, or in its
// route, is reported before anything is sent.
#include <fmt/format.h>

#include "core/manager/manager_impl.hpp"
#include "core/store/grant_text.hpp"
#include "dlock/exported_grant.hpp"

namespace dlock::inline v0 {
namespace {

class ExportedLock final : public DistributedLock {
 public:
  ExportedLock(std::shared_ptr<core::Engine> engine, const core::GrantText& text)
      : engine_(std::move(engine)),
        name_(text.grant.name),
        route_(engine_->route(name_)),
        adoption_(std::make_shared<const Adoption>(text.adoption())) {}

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return route_.store; }
  detail::LockContext& context() const noexcept override { return *engine_; }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    if (options.mode == Mode::shared) {
      if (options.diagnostics != nullptr) {
        *options.diagnostics = {name_, route_.store, "mode shared: an exported grant is exclusive"};
      }
      handler(make_error_code(errc::invalid_argument), LockHandle());
      return [] {};
    }
    return engine_->start_adoption(name_, route_, adoption_, options, std::move(handler));
  }

 private:
  const std::shared_ptr<core::Engine> engine_;
  const std::string name_;
  const RouteConfig& route_;  ///< the engine's
  const std::shared_ptr<const Adoption> adoption_;
};

[[noreturn]] void refuse_grant(errc error, const ExportedGrant& grant, std::string why) {
  throw LockError(make_error_code(error), {grant.name, grant.store, std::move(why)});
}

void check_route(const core::Engine& engine, const ExportedGrant& grant) {
  const auto& route = engine.route(grant.name);
  if (route.store != grant.store) {
    refuse_grant(errc::config_invalid, grant,
                 fmt::format("exported from the store '{}', but here the lock is routed to '{}'; "
                             "give the store one name in both configurations",
                             grant.store, route.store));
  }
  if (core::other_store(route) != nullptr) {
    refuse_grant(errc::not_supported, grant, std::string(core::kMigrates));
  }
  const auto& backend = *engine.setup_of(route.store).descriptor;
  if (backend.has_adoption) return;
  refuse_grant(errc::not_supported, grant,
               fmt::format("{} store '{}' gives no grant to another process: {}", backend.name,
                           route.store, backend.why_no_adoption));
}

}  // namespace

std::shared_ptr<DistributedLock> LockManager::exported(std::string_view text) {
  const auto read = core::GrantText::read(text);
  check_route(*impl_->engine, read.grant);
  return std::make_shared<ExportedLock>(impl_->engine, read);
}

LockHandle LockManager::adopt(std::string_view text, AcquireOptions options) {
  return exported(text)->acquire(options);
}

LockHandle LockManager::adopt(std::string_view text, AcquireOptions options,
                              error_code& ec) noexcept {
  try {
    return exported(text)->acquire(options, {}, ec);
  } catch (const LockError& error) {
    ec = error.code();
    if (options.diagnostics != nullptr) {
      *options.diagnostics = {error.lock(), error.store(), error.server_text()};
    }
  } catch (const std::bad_alloc&) {
    ec = make_error_code(errc::unavailable);
  }
  return {};
}

}  // namespace dlock::inline v0
