# dlock_test(NAME LABEL tier SOURCES file... [LINK target...] [TIMEOUT seconds] [PROCESSORS n]
#            [COST seconds] [DEFINES NAME=value...] [THREADLESS]
#            [ONE_BY_ONE | APART file...])
#
# One GoogleTest program; each of its cases becomes a ctest test `tier.Suite.Case`, under a sanitizer
# the program as a whole `asan.tier.NAME`. The label is the
# tier (unit, contract, simulation, live, cost, interop, soak, cli, compare, package): `ctest -L unit`. PROCESSORS
# tells ctest how many slots a case takes of the three per core that scripts/test gives it: 1 for what
# mostly waits, 2 for servers and for what computes, 6 for what measures. COST: what takes longest
# begins first; about so many seconds, given where it is a minute and more. THREADLESS: there is no
# second thread in it, and so nothing for ThreadSanitizer: it is not built for that.
# ONE_BY_ONE: its files use the same names for what each has of its own, so that they cannot be compiled
# together, as all presets but `dev` and `tidy` do; APART: these of them do.
include(GoogleTest)
find_package(GTest REQUIRED)

# A case that hangs ends there. Sanitizers slow everything down; a loaded machine does too.
set(dlock_timeout_unit 120)
set(dlock_test_prefix "") # of tests that run beside those of other builds
if(DLOCK_SANITIZE)
  string(SUBSTRING ${DLOCK_SANITIZE} 0 1 dlock_test_prefix)
  string(APPEND dlock_test_prefix "san.")
  set(dlock_timeout_unit 300) # five hundred programs on one loop
endif()
set(dlock_timeout_contract 300)
set(dlock_timeout_simulation 600)
set(dlock_timeout_live 600)
set(dlock_timeout_interop 300)
set(dlock_timeout_soak 600)
set(dlock_timeout_cli 300)
set(dlock_timeout_compare 600)
set(dlock_timeout_package 2400) # compiles the library while other tests and builds run

# dlock_compile_quickly(TARGET): what only tests is compiled without optimization in every build: it
# is compiled far more often than it matters how fast it runs. What it tests is built as it ships.
function(dlock_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# What every test program runs with. The suppression is for a leak of the ZooKeeper C client, by the
# name of its function.
if(DLOCK_SANITIZE STREQUAL "address")
  set(dlock_test_environment
    "LSAN_OPTIONS=print_suppressions=0:suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan_suppressions.txt")
else()
  # A fork()ed child may lock and start threads of its own: a test does.
  set(dlock_test_environment "TSAN_OPTIONS=die_after_fork=0")
endif()

function(dlock_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_BY_ONE;THREADLESS" "LABEL;TIMEOUT;PROCESSORS;COST"
    "SOURCES;LINK;DEFINES;APART")
  if(arg_THREADLESS AND DLOCK_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(arg_LABEL STREQUAL "simulation" AND DLOCK_SANITIZE) # of the simulation, its runs; not its own tests
    return()
  endif()
  if(NOT DEFINED dlock_timeout_${arg_LABEL})
    message(FATAL_ERROR "dlock_test(${name}): no tier '${arg_LABEL}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${dlock_timeout_${arg_LABEL}})
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests UNITY_BUILD_BATCH_SIZE 16)
  if(arg_ONE_BY_ONE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(arg_APART)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE ${arg_DEFINES})
  # Debian's GTest package has no target for gmock.
  target_link_libraries(${name} PRIVATE ${arg_LINK} fmt::fmt gmock GTest::gtest_main)
  dlock_warnings(${name})
  if(arg_LABEL STREQUAL "simulation") # a simulation's program computes
    list(LENGTH arg_SOURCES files)
    if(files GREATER 2) # for fewer it would not pay
      dlock_precompile(${name} HEADERS ${dlock_asio_headers} <gmock/gmock.h> <gtest/gtest.h>)
    endif()
  else()
    dlock_compile_quickly(${name})
    dlock_precompile(${name} LIKE dlock_test_headers)
  endif()
  add_dependencies(dlock_tests_${arg_LABEL} ${name})
  set(properties LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} COST ${arg_COST}
    ENVIRONMENT "${dlock_test_environment}")
  if(DLOCK_SANITIZE) # the start of an instrumented program takes longer than most cases
    add_test(NAME ${dlock_test_prefix}${arg_LABEL}.${name} COMMAND ${name})
    set_tests_properties(${dlock_test_prefix}${arg_LABEL}.${name} PROPERTIES ${properties})
  else()
    gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_TIMEOUT 120 PROPERTIES ${properties})
  endif()
endfunction()

# The headers of every test program, parsed once.
if(DLOCK_PRECOMPILE AND NOT TARGET dlock_test_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "// Owns the precompiled headers.\n")
  # A program, to be compiled as programs are.
  add_executable(dlock_test_headers ${PROJECT_BINARY_DIR}/test_headers.cpp)
  set_target_properties(dlock_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(dlock_test_headers PRIVATE Boost::headers fmt::fmt gmock GTest::gtest_main)
  dlock_warnings(dlock_test_headers)
  dlock_compile_quickly(dlock_test_headers)
  dlock_precompile(dlock_test_headers HEADERS ${dlock_asio_headers} <gmock/gmock.h> <gtest/gtest.h>)
endif()

# All test programs, and those of each tier, to build them without the rest.
if(NOT TARGET dlock_tests)
  add_custom_target(dlock_tests)
  foreach(tier unit contract simulation live cost interop soak cli compare package)
    add_custom_target(dlock_tests_${tier})
    add_dependencies(dlock_tests dlock_tests_${tier})
  endforeach()
endif()
