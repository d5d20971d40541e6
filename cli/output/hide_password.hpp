// SPDX-License-Identifier: Apache-2.0
//
// The command line can be read by everybody on the machine, as long as the program runs.
#pragma once

namespace dlock::cli {

/// Overwrites the passwords of URLs in our own command line. True if there was one: who looked in
/// the first moments may have seen it.
bool hide_passwords(int argc, char** argv) noexcept;

}  // namespace dlock::cli
