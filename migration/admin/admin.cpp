// SPDX-License-Identifier: Apache-2.0
#include "migration/admin.hpp"

#include "migration/admin/session.hpp"

namespace dlock::core::migration {

Admin::Admin(Config config, OpenOptions options, std::string plan, Tell tell)
    : session_(std::make_unique<Session>(std::move(config), std::move(options), std::move(plan),
                                         std::move(tell))),
      move_(*session_),
      leased_(*session_) {}

Admin::~Admin() = default;

bool Admin::is_leased() const noexcept { return !session_->gate().empty(); }

bool Admin::stop() { return session_->stop(); }

}  // namespace dlock::core::migration
