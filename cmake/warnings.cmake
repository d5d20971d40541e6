# dlock_warnings(target): the warnings every target of ours is built with. PRIVATE, so that a
# consumer's own code is never judged by them; errors only where DLOCK_WERROR says so (the presets).
function(dlock_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast
    # g++ 12 takes the operator new of an inlined coroutine frame for another one than its delete.
    # And at -O3 it sees overlapping and endless copies in std::string's operator+ and moves (GCC
    # bug 105651); behind a precompiled header it no longer knows that this is the library's code.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete -Wno-restrict -Wno-stringop-overflow
      -Wno-stringop-overread -Wno-array-bounds>
    # Of files that are compiled together it takes all but the first for headers.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>
    $<$<BOOL:${DLOCK_WERROR}>:-Werror>)
endfunction()
