// SPDX-License-Identifier: Apache-2.0
//
// The SPI over a simulated Server: every call is a message there and one back, each of which may be
// late or lost; a late request still does its work.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/store/store.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/migration/server.hpp"

namespace dlock::simulation::migration {

/// How messages fare. Changed by the run.
struct Weather {
  double loss = 0;  ///< of a message
  double late = 0;  ///< a message takes up to `latest`
  Duration latest = seconds(6);
  double twice = 0;  ///< a request is carried out again, up to `latest` later
  /// Whoever gets an answer may be paused or killed at that very moment.
  std::function<void(Process&)> on_answer;
};

/// The way between one program and one server.
struct Link {
  TimePoint cut_until{};  ///< nothing gets through before
};

/// A store of that host over a server. All outlive it; `link` may be null.
std::shared_ptr<core::Store> make_store(const std::shared_ptr<SimHost>& host,
                                        const std::string& name, Server& server,
                                        const Weather& weather, const Link* link = nullptr);

inline constexpr milliseconds kLease{2000};

}  // namespace dlock::simulation::migration
