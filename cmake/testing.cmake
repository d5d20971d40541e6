# dlock_test(NAME LABEL tier SOURCES file... [LINK target...] [TIMEOUT seconds] [PROCESSORS n]
#            [COST seconds] [DEFINES NAME=value...] [THREADLESS] [WHOLE]
#            [ONE_BY_ONE | APART file...])
#
# Adds one GoogleTest program. Each of its cases becomes a ctest test `tier.Suite.Case`. Under a sanitizer
# the whole program is one test, `asan.tier.NAME`.
#
# LABEL       the tier: unit, contract, simulation, live, cost, interop, soak, cli, compare or package
# PROCESSORS  slots of the four per core that scripts/test uses. 1 for a test whose processor time is below
#             0.3 of its run time (the default), 2 above that, more for a measurement
# COST        seconds, for tests of a minute and more: they start first
# THREADLESS  the program has one thread, so it is not built for ThreadSanitizer
# WHOLE       the program is one ctest test in every build, because its cases share a server
# ONE_BY_ONE  the sources use the same local names, so they are not compiled together (unity build)
# APART       these sources are not compiled together with the others
include(GoogleTest)
find_package(GTest REQUIRED)

# A case that hangs ends after this time. Sanitizers and a loaded machine slow tests down.
set(dlock_timeout_unit 120)
set(dlock_test_prefix "") # distinguishes the same test in several builds
if(DLOCK_SANITIZE)
  string(SUBSTRING ${DLOCK_SANITIZE} 0 1 dlock_test_prefix)
  string(APPEND dlock_test_prefix "san.")
  set(dlock_timeout_unit 300) # five hundred programs on one loop
endif()
set(dlock_timeout_contract 300)
set(dlock_timeout_simulation 600)
set(dlock_timeout_live 600)
set(dlock_timeout_cost 120)
set(dlock_timeout_interop 300)
set(dlock_timeout_soak 600)
set(dlock_timeout_cli 300)
set(dlock_timeout_compare 600)
set(dlock_timeout_package 2400) # compiles the library while other tests and builds run

# dlock_compile_quickly(TARGET): compiles the code of tests without optimization in every build. The
# libraries under test are built as they ship.
function(dlock_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# The environment of every test program. The suppression names a function of the ZooKeeper C client
# that leaks.
if(DLOCK_SANITIZE STREQUAL "address")
  set(dlock_test_environment
    "LSAN_OPTIONS=print_suppressions=0:suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan_suppressions.txt")
else()
  # A test locks and starts threads in a fork()ed child.
  set(dlock_test_environment "TSAN_OPTIONS=die_after_fork=0")
endif()

function(dlock_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_BY_ONE;THREADLESS;WHOLE" "LABEL;TIMEOUT;PROCESSORS;COST"
    "SOURCES;LINK;DEFINES;APART")
  if(arg_THREADLESS AND DLOCK_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(arg_LABEL STREQUAL "simulation" AND DLOCK_SANITIZE) # sanitizers run its seeds only
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
  if(arg_LABEL MATCHES "^(unit|contract)$" AND NOT DLOCK_SANITIZE) # built on demand: see scripts/test
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
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
  # Each folder of its sources is a label too: scripts/changed.py finds tests by it.
  set(labels ${arg_LABEL})
  if(arg_LABEL STREQUAL "unit")
    foreach(source ${arg_SOURCES})
      cmake_path(GET source PARENT_PATH source_folder)
      list(APPEND labels unit/${source_folder})
    endforeach()
    list(REMOVE_DUPLICATES labels)
  endif()
  if(DLOCK_SANITIZE OR arg_WHOLE) # the start of an instrumented program takes longer than most cases
    add_test(NAME ${dlock_test_prefix}${arg_LABEL}.${name} COMMAND ${name})
    set_tests_properties(${dlock_test_prefix}${arg_LABEL}.${name} PROPERTIES LABELS "${labels}"
      TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} COST ${arg_COST}
      ENVIRONMENT "${dlock_test_environment}")
  else()
    # Only the tier: gtest_discover_tests() cannot pass a list of labels.
    gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_TIMEOUT 120 PROPERTIES
      LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} COST ${arg_COST}
      ENVIRONMENT "${dlock_test_environment}")
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
