// SPDX-License-Identifier: Apache-2.0
//
// For tests over all stores at once: one running store of each kind that this build has and that
// processes share.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace dlock::testkit {

struct RunningStore {
  std::string backend;  ///< as in BackendDescriptor::name
  std::string url;
  std::shared_ptr<void> server;  ///< lives as long as this, or its folder does
};

/// With its defaults. Throws for a backend that nobody has told this function how to start.
RunningStore start_store(std::string_view backend);

/// Each that is built in, but for `memory`, which one process has to itself.
std::vector<RunningStore> start_every_store();

}  // namespace dlock::testkit
