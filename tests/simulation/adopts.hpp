// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a grant that changes its program, on any store that can do it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "core/store/grant_text.hpp"
#include "tests/simulation/bench.hpp"

namespace dlock::simulation {

/// The text of what the program has; empty: it could not be exported.
template <class AnyBench>
std::string exported(AnyBench& bench, Program& program, const AttemptPtr& held) {
  const auto text = std::make_shared<std::optional<std::string>>();
  program.process.deliver([held, text] {
    core::HandleAccess::hold(held->handle)
        ->export_grant(milliseconds(2000),
                       [text](error_code, std::string told) { *text = std::move(told); });
  });
  bench.run_until([&] { return text->has_value(); });
  return text->value_or("");
}

/// The answer to the adopter is late: he believes in the lease from before he asked.
template <class AnyBench>
bool adopter_counts_from_before_asking(AnyBench& bench) {
  constexpr auto kLock = "orders/42";
  auto& adopter = bench.connected("adopter");
  auto& exporter = bench.program("exporter");
  const auto held = exporter.acquire(kLock);
  if (!bench.granted(held)) return false;
  const auto text = exported(bench, exporter, held);
  core::Acquisition::Request request;
  request.name = kLock;
  request.limits.connect_timeout = adopter.store->setup().settings.connect_timeout;
  request.adoption = std::make_shared<const Adoption>(core::GrantText::read(text).adoption());
  // Some ask before they write.
  bench.network.arm(adopter.process, Fault::reply_late, [&bench, &adopter] {
    bench.network.arm(adopter.process, Fault::reply_late, [] {});
  });
  const auto exporters = bench.store.owners(kLock);
  const auto adopts = adopter.start(std::move(request));
  bench.run_until([&] { return bench.store.owners(kLock) != exporters; }, seconds(5));
  const auto taken = bench.world.now();
  bench.run_until([&] { return adopts->told; }, seconds(2));
  // Without an answer for so long it asks again, and the lease runs from there.
  const bool asked_again = adopts->at > taken + milliseconds(240);
  if (!adopts->held() || asked_again) return true;
  const auto left = adopts->handle.remaining().value_or(Duration::max());
  return bench.world.now() + left <= taken + bench.store.lease();
}

}  // namespace dlock::simulation
