// SPDX-License-Identifier: Apache-2.0
//
// The effect of fork() on locks. The child gets copies of dlock's objects and its descriptors, but
// not its threads. The child must not use a loop or a library handle (they are shared with the
// parent). It must close the descriptors that keep a lock (or it holds the lock of a killed
// parent).
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

namespace dlock::inline v0 {

/// Returns the number of fork()s between the program's start and this process. Cheap. An object
/// stores the value at its creation; another value means that it belongs to a parent process.
unsigned fork_generation() noexcept;

/// A descriptor that a fork()ed child closes at once, before fork() returns in it. Thread-safe.
void close_in_fork_child(int descriptor);
/// Before the descriptor is closed here. Thread-safe.
void keep_in_fork_child(int descriptor) noexcept;

}  // namespace dlock::inline v0
