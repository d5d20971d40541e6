// SPDX-License-Identifier: Apache-2.0
//
// Curator's InterProcessMutex in a process of its own. It prints `tried true` or `tried false`,
// then `held` when it holds; a line on its standard input, or its end, and it gives the lock back
// and prints `released`.
#pragma once

#include <filesystem>
#include <string>

#include "testkit/process.hpp"

namespace dlock::fleet {

/// `folder` keeps its source; `node`: the lock's path. Throws MissingPackage. Needs the Debian
/// packages libcurator-recipes-java and default-jdk-headless.
testkit::ProcessOptions curator(const std::filesystem::path& folder, const std::string& hosts,
                                const std::string& node);

}  // namespace dlock::fleet
