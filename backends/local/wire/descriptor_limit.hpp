// SPDX-License-Identifier: Apache-2.0
//
// Every claim costs a descriptor, and the usual soft limit is 1,024.
#pragma once

#include <string>

namespace dlock::local {

/// Raises the soft RLIMIT_NOFILE of this process to the hard limit. False if it is there already.
bool raise_descriptor_limit() noexcept;

/// For the message of a failure: which limit was met and how to raise it.
std::string descriptor_limit_text();

}  // namespace dlock::local
