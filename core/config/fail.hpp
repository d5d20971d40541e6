// SPDX-License-Identifier: Apache-2.0
//
// The one form of a complaint about the configuration: where, which store, what, what instead.
#pragma once

#include <string>

#include "dlock/config.hpp"

namespace dlock::core {

/// `dlock.yaml:3:5: store 'zk': text`; parts that are empty are left out.
std::string config_message(const Origin& origin, const std::string& store, const std::string& text);

/// Throws LockError{config_invalid} whose server_text() is that message.
[[noreturn]] void fail_config(const Origin& origin, const std::string& store,
                              const std::string& text);

}  // namespace dlock::core
