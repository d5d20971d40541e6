// SPDX-License-Identifier: Apache-2.0
//
// One clear complaint where C++ is too old, instead of a thousand about concepts.
#pragma once

#if __cplusplus < 202002L
#error "dlock needs C++20: compile with -std=c++20 or later (CMake: CMAKE_CXX_STANDARD 20)"
// There is none: a missing file ends the compiler here.
#include "dlock/needs_cplusplus_20"
#endif
