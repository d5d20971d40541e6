// SPDX-License-Identifier: Apache-2.0
//
// The text of an exported grant, as `--adopt FILE` names it.
#pragma once

#include <string>

namespace dlock::cli {

/// Of the first line of the file, or of standard input (`-`), of which no byte more is taken: the
/// rest is the command's. Throws LockError{invalid_argument} if it cannot be read, or is no such
/// text, or of another lock than `name`.
std::string read_grant(const std::string& file, const std::string& name);

}  // namespace dlock::cli
