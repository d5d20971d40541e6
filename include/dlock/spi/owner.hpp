// SPDX-License-Identifier: Apache-2.0
//
// Which process an Owner names: for backends, which write it into their store, and for messages.
// Thread safety: all functions may be called from any thread.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::inline v0 {

/// Returns the host, the pid and the pid namespace of this process; `id` and `app` are empty.
Owner this_process();

/// Whether `owner` names a process of this host and of this process's pid namespace.
bool runs_here(const Owner& owner);

/// Returns `pid 7`, or `pid 7 in another pid namespace` where an operator on the owner's host
/// cannot use the number as it is.
std::string pid_words(const Owner& owner);

/// Appends `PID` or `PID@NAMESPACE`, the text of both numbers in a store.
void append_pid(const Owner& owner, std::string& out);

/// Reads what append_pid() has written into `owner`. False: `text` has another format.
bool read_pid(std::string_view text, Owner& owner);

}  // namespace dlock::inline v0
