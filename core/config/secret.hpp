// SPDX-License-Identifier: Apache-2.0
//
// Secrets: named in the configuration, kept outside it. A configuration file is committed, copied
// and pasted into tickets; an environment variable or a file with its own rights is not.
#pragma once

#include <string>

#include "core/config/parsed.hpp"

namespace dlock::core {

/// The value of an environment variable; the error names the variable.
Parsed<std::string> secret_from_environment(const std::string& variable);

/// The first line of a file; the error names the file and says why.
Parsed<std::string> secret_from_file(const std::string& path);

}  // namespace dlock::core
