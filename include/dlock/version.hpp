// SPDX-License-Identifier: Apache-2.0
//
// The one place the version is written: CMake, pkg-config, `dlock --version` and the documents
// read it from here. Semantic versioning; no ABI promise before 1.0 (the inline namespace `v0`).
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#define DLOCK_VERSION "0.1.0"
