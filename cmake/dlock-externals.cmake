# The client libraries below the backends, as imported targets: where they are is a matter of the
# machine that links, not of the one that built. Used by the build, and installed beside the package.

# dlock_external(NAME LIBRARY [HEADER]): dlock_external::NAME, if the library (and its header) is
# there.
function(dlock_external name library)
  if(TARGET dlock_external::${name})
    return()
  endif()
  string(TOUPPER ${name} upper)
  find_library(DLOCK_${upper}_LIBRARY NAMES ${library})
  mark_as_advanced(DLOCK_${upper}_LIBRARY)
  if(NOT DLOCK_${upper}_LIBRARY)
    return()
  endif()
  if(ARGC GREATER 2)
    find_path(DLOCK_${upper}_INCLUDE_DIR ${ARGV2})
    mark_as_advanced(DLOCK_${upper}_INCLUDE_DIR)
    if(NOT DLOCK_${upper}_INCLUDE_DIR)
      return()
    endif()
  endif()
  add_library(dlock_external::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(dlock_external::${name} PROPERTIES
    IMPORTED_LOCATION ${DLOCK_${upper}_LIBRARY})
  if(ARGC GREATER 2)
    set_target_properties(dlock_external::${name} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES ${DLOCK_${upper}_INCLUDE_DIR})
  endif()
endfunction()
