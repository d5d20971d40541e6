# One package test, in a folder of its own:
#   cmake -DSTEP=... -DBUILD=... -DSOURCE=... -DWORK=... -DCXX=... [-DLAUNCHER=...] -P run.cmake
cmake_minimum_required(VERSION 3.25)
set(installed ${WORK}/installed)
set(consumer ${SOURCE}/tests/package/consumer)

function(run)
  list(JOIN ARGN " " line)
  message(STATUS "${line}")
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# build_consumer(folder TARGETS target... CONFIGURE option...): no targets: all.
function(build_consumer folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TARGETS;CONFIGURE")
  file(REMOVE_RECURSE ${folder})
  set(launcher "")
  if(LAUNCHER)
    set(launcher -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
  endif()
  run(${CMAKE_COMMAND} -G Ninja -S ${consumer} -B ${folder} -DCMAKE_CXX_COMPILER=${CXX} ${launcher}
    -DCMAKE_CXX_FLAGS=-O0 ${arg_CONFIGURE})
  if(NOT arg_TARGETS)
    set(arg_TARGETS all)
  endif()
  run(${CMAKE_COMMAND} --build ${folder} --target ${arg_TARGETS})
endfunction()

# On a local store.
function(run_consumers folder)
  foreach(program ${ARGN})
    run(${folder}/${program} file://${WORK}/locks)
  endforeach()
endfunction()

# Each store's own consumer, and the one that has them all, on a server.
function(run_on_servers folder)
  set(servers ${BUILD}/bin/dlock-servers)
  set(kinds "")
  foreach(kind zookeeper redis memcached)
    if(EXISTS ${folder}/consumer_${kind})
      list(APPEND kinds ${kind})
    endif()
  endforeach()
  if(NOT kinds)
    return()
  endif()
  execute_process(COMMAND ${servers} start --dir ${folder}/servers ${kinds}
    OUTPUT_VARIABLE urls OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" urls "${urls}")
  set(failed "")
  foreach(kind url IN ZIP_LISTS kinds urls)
    foreach(program consumer consumer_${kind})
      message(STATUS "${folder}/${program} ${url}")
      execute_process(COMMAND ${folder}/${program} ${url} RESULT_VARIABLE result)
      if(NOT result EQUAL 0)
        string(APPEND failed " ${program} on ${kind} (${result})")
      endif()
    endforeach()
  endforeach()
  run(${servers} stop --dir ${folder}/servers)
  if(failed)
    message(FATAL_ERROR "failed:${failed}")
  endif()
endfunction()

# pkg_config_flags(VARIABLE package...): what compiles and links against the installation.
function(pkg_config_flags variable)
  file(GLOB_RECURSE file ${installed}/dlock.pc)
  cmake_path(GET file PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND pkg-config --cflags --libs ${ARGN} OUTPUT_VARIABLE flags
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${variable} ${flags} PARENT_SCOPE)
endfunction()

# What is installed finds everything anew, wherever it is put.
function(expect_no_paths_of_this_machine)
  file(GLOB_RECURSE files ${installed}/*.cmake ${installed}/*.pc)
  foreach(file ${files})
    file(STRINGS ${file} lines)
    foreach(line ${lines})
      # `/usr` stands in a line of CMake's own that asks whether the prefix is that.
      if(line MATCHES "/lib/|/include/|/usr/lib|/home/|\\.a[;\"]|${SOURCE}|${WORK}"
          AND NOT line MATCHES "_IMPORT_PREFIX|PACKAGE_PREFIX_DIR|^#|\\^\\(/lib|pcfiledir|prefix}")
        message(FATAL_ERROR "${file} has a path of this machine: ${line}")
      endif()
    endforeach()
  endforeach()
endfunction()

# A page that a message of dlock names is a page that its user has.
function(expect_cited_pages)
  file(GLOB_RECURSE sources ${SOURCE}/cli/*.cpp ${SOURCE}/program/*.cpp ${SOURCE}/core/*.cpp
    ${SOURCE}/migration/*.cpp ${SOURCE}/backends/*.cpp)
  file(GLOB_RECURSE pages RELATIVE ${installed} ${installed}/share/doc/dlock/*.md)
  foreach(source ${sources})
    file(STRINGS ${source} lines REGEX "\".*docs/[a-z]+\\.md")
    foreach(line ${lines})
      string(REGEX MATCH "docs/[a-z]+\\.md" page "${line}")
      if(NOT "share/doc/dlock/${page}" IN_LIST pages)
        message(FATAL_ERROR "${source} cites ${page}, which is not installed (${pages})")
      endif()
    endforeach()
  endforeach()
endfunction()

# C++17: what is wrong, and an end.
function(refuse_old_standard)
  file(GLOB headers ${SOURCE}/include/dlock/*.hpp ${SOURCE}/include/dlock/spi/*.hpp
    ${SOURCE}/include/dlock/contract/*.hpp ${SOURCE}/include/dlock/testing/*.hpp)
  foreach(header ${headers})
    execute_process(COMMAND ${CXX} -std=c++17 -fsyntax-only -x c++ -I${SOURCE}/include ${header}
      RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_QUIET)
    string(REGEX MATCHALL "error:" errors "${said}")
    list(LENGTH errors count)
    if(result EQUAL 0 OR count GREATER 2 OR NOT said MATCHES "dlock needs C\\+\\+20")
      message(FATAL_ERROR "${header} with C++17: ${count} errors\n${said}")
    endif()
  endforeach()
endfunction()

if(STEP STREQUAL "install")
  # Moved after the installation: nothing in it may remember where it was put first.
  file(REMOVE_RECURSE ${installed} ${WORK}/staged)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/staged)
  file(RENAME ${WORK}/staged ${installed})
  expect_no_paths_of_this_machine()
  expect_cited_pages()
elseif(STEP STREQUAL "old_standard")
  refuse_old_standard()
elseif(STEP STREQUAL "find_package")
  build_consumer(${WORK}/find_package CONFIGURE -DCMAKE_PREFIX_PATH=${installed})
  run_consumers(${WORK}/find_package consumer consumer_async consumer_local)
  run_on_servers(${WORK}/find_package)
elseif(STEP STREQUAL "add_subdirectory")
  # Without precompiled headers. The other stores are built from the same sources for the installation
  # above; here it is enough that each finds its headers.
  set(objects "")
  foreach(backend memory zookeeper redis memcached)
    list(APPEND objects dlock/backends/${backend}/CMakeFiles/dlock_${backend}.dir/backend.cpp.o)
  endforeach()
  build_consumer(${WORK}/add_subdirectory CONFIGURE -DDLOCK_SOURCE=${SOURCE}
    TARGETS consumer_local dlock/backends/CMakeFiles/dlock_dlock.dir/built_in.cpp.o
      CMakeFiles/consumer_async.dir/async.cpp.o ${objects})
  run_consumers(${WORK}/add_subdirectory consumer_local)
elseif(STEP STREQUAL "pkg_config")
  pkg_config_flags(flags dlock)
  run(${CXX} -std=c++20 ${consumer}/main.cpp -o ${WORK}/pkg_config_consumer ${flags})
  run_consumers(${WORK} pkg_config_consumer)
elseif(STEP STREQUAL "backend")
  # A backend of somebody else's: nothing of ours but the installation.
  set(consumer ${WORK}/backend_source)
  file(REMOVE_RECURSE ${consumer})
  file(COPY ${SOURCE}/examples/backend/ DESTINATION ${consumer})
  build_consumer(${WORK}/backend CONFIGURE -DCMAKE_PREFIX_PATH=${installed})
  run(${WORK}/backend/contract_test --gtest_brief=1)
elseif(STEP STREQUAL "testing")
  # A unit test of somebody else's, likewise; and what pkg-config says links it, too.
  set(consumer ${WORK}/testing_source)
  file(REMOVE_RECURSE ${consumer})
  file(COPY ${SOURCE}/examples/testing/ DESTINATION ${consumer})
  build_consumer(${WORK}/testing CONFIGURE -DCMAKE_PREFIX_PATH=${installed})
  run(${WORK}/testing/mailer_test --gtest_brief=1)
  pkg_config_flags(flags dlock-testing gtest_main)
  run(${CXX} -std=c++20 ${consumer}/mailer.cpp ${consumer}/mailer_test.cpp
    -o ${WORK}/testing/pkg_config_test ${flags})
  run(${WORK}/testing/pkg_config_test --gtest_brief=1)
elseif(STEP STREQUAL "command")
  run(${installed}/bin/dlock --version)
else()
  message(FATAL_ERROR "no step '${STEP}'")
endif()
