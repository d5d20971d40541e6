// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/migrate/migrate_refusal.hpp"

#include "dlock/error.hpp"

namespace dlock::cli {

void fail(const Failure& failure) {
  if (failure.error == errc::config_unsafe || failure.error == errc::not_supported ||
      failure.error == errc::protocol) {
    throw Refusal{failure.text.empty() ? failure.error.message() : failure.text};
  }
  throw LockError(failure.error, {{}, {}, failure.text});
}

}  // namespace dlock::cli
