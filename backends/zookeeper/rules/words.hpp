// SPDX-License-Identifier: Apache-2.0
//
// A server's answer to a four-letter word, taken apart. Pure.
#pragma once

#include <string>

namespace dlock::zookeeper {

/// The value of a `Key: value` line, up to a comma; empty if there is none.
std::string line_value(const std::string& text, const std::string& key);

}  // namespace dlock::zookeeper
