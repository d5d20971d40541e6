// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "cli/open.hpp"
#include "cli/output/exit_codes.hpp"

namespace dlock::cli {
namespace {

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

MigrateSession::MigrateSession(const Arguments& arguments)
    : signals_{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
      engine_(core::Engine::make(load_config(arguments), open_options())) {
  for (const auto& route : engine_->routes().all()) {
    if (!route.migrate || route.migrate->plan != arguments.plan) continue;
    if (patterns_.empty()) migrate_ = *route.migrate;
    if (route.migrate->from != migrate_.from || route.migrate->to != migrate_.to) {
      throw LockError(
          make_error_code(errc::config_invalid),
          {{},
           {},
           fmt::format("{}: plan '{}' goes from '{}' to '{}' here and from '{}' to '{}' "
                       "elsewhere; give them two names",
                       route.origin.text(), arguments.plan, route.migrate->from, route.migrate->to,
                       migrate_.from, migrate_.to)});
    }
    patterns_.push_back(route.match);
  }
  if (patterns_.empty()) {
    throw LockError(
        make_error_code(errc::config_invalid),
        {{},
         {},
         fmt::format("no entry of `locks:` has the plan '{}'; write for example `- {{ match: "
                     "\"billing/**\", migrate: {{ from: zk, to: redis, plan: {} }} }}`",
                     arguments.plan, arguments.plan)});
  }
}

MigrateSession::Stores MigrateSession::stores(std::shared_ptr<core::Store> from) const {
  Stores all{std::move(from), engine_->store(migrate_.to), nullptr};
  if (!migrate_.window.empty()) all.window = engine_->store(migrate_.window);
  return all;
}

int MigrateSession::wait_for_end(Wake& done, const std::function<void()>& stop) {
  int first = 0;
  while (true) {
    wait_for({signals_.descriptor(), done.descriptor()}, std::nullopt);
    while (const auto signal = signals_.next()) {
      if (!ends_a_wait(signal->number)) continue;
      // A question leaves nothing behind. Asked again while we clean up: the store will do it when
      // our lease is over.
      if (!stop || first != 0) ::_exit(signal_status(signal->number));
      first = signal->number;
      asio::post(engine_->env().executor(), stop);
    }
    if (is_readable(done.descriptor())) return first;
  }
}

}  // namespace dlock::cli
