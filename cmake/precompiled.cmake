# dlock_precompile(target [HEADERS <header>...]): what most files include is parsed once per target.
# dlock_precompile(target LIKE other): once for both; they must be compiled alike (libraries, test programs).
#
# It takes a third off a build. Off in a consumer's build and in the preset `tidy`: there every file
# stands on its own includes.
option(DLOCK_PRECOMPILE "Precompile the headers that most files include" OFF)
# The compiler's own memory is collected later: an eighth less time for what is as large as that.
if(DLOCK_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=700000) # KiB
endif()

# And what links a hundred programs does so with the linker that takes half the time, where it is.
if(DLOCK_PRECOMPILE)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold DLOCK_GOLD)
  if(DLOCK_GOLD)
    add_link_options(-fuse-ld=gold)
  endif()
endif()

function(dlock_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIKE" "HEADERS")
  if(NOT DLOCK_PRECOMPILE)
    return()
  endif()
  if(arg_LIKE)
    target_precompile_headers(${target} REUSE_FROM ${arg_LIKE})
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string>
    <string_view> <utility> <vector> ${arg_HEADERS})
endfunction()

# The headers by which our files are slow to parse.
set(dlock_asio_headers
  <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/detached.hpp>
  <boost/asio/post.hpp> <fmt/format.h>)

# Of our libraries, which are compiled alike: parsed once for all of them.
if(DLOCK_PRECOMPILE AND NOT TARGET dlock_library_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/library_headers.cpp "// Owns the precompiled headers.\n")
  add_library(dlock_library_headers OBJECT ${PROJECT_BINARY_DIR}/library_headers.cpp)
  target_link_libraries(dlock_library_headers PRIVATE Boost::headers fmt::fmt)
  dlock_warnings(dlock_library_headers)
  dlock_precompile(dlock_library_headers HEADERS ${dlock_asio_headers})
endif()
