// SPDX-License-Identifier: Apache-2.0
#include "migration/policy/sealed.hpp"

#include <fmt/format.h>

#include "dlock/spi/error.hpp"
#include "migration/plan.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

Failure sealed_failure(std::string_view record, std::string_view lock, std::string_view store,
                       bool is_finished) {
  std::string why;
  const auto parsed = parse_record(record, &why);
  if (!parsed) {
    return make_failure(
        errc::protocol,
        fmt::format("a migration's record stands in the lock's place, and {}", why));
  }
  if (is_finished) {
    return make_failure(
        errc::moving,
        fmt::format("plan '{}' has moved it from the store '{}' to '{}' and is finished; write "
                    "`{}` below `locks:`, with the store '{}' below `stores:`",
                    parsed->plan, store, parsed->target, store_line(lock, parsed->target),
                    parsed->target));
  }
  const bool gone = parsed->state == MoveState::final_;
  return make_failure(
      errc::moving,
      fmt::format("plan '{}' {} it from the store '{}' to '{}'; write `{}` below `locks:`{}, with "
                  "the store '{}' below `stores:`",
                  parsed->plan, gone ? "has moved" : "moves", store, parsed->target,
                  route_line(lock, store, parsed->target, parsed->plan),
                  gone ? fmt::format(", or `store: {}`", parsed->target) : "", parsed->target));
}

}  // namespace dlock::core::migration
