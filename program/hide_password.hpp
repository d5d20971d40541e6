// SPDX-License-Identifier: Apache-2.0
//
// Every user of the machine can read the command line while the program runs.
#pragma once

namespace dlock::program {

/// Overwrites the passwords of URLs in the command line of this process. Prints a warning if there
/// was one, because another user may have read it before.
void hide_passwords(int argc, char** argv) noexcept;

}  // namespace dlock::program
