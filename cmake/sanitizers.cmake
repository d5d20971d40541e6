# DLOCK_SANITIZE=address (with undefined behaviour) or thread, for the whole build.
if(DLOCK_SANITIZE STREQUAL "address")
  # Without `vptr`: for each type that it meets it takes a pipe, and calls it an error where a process
  # has no descriptor left, which is what some tests are about. Without `null` and `alignment`, which
  # double the time of a compilation: a null pointer that is followed is a signal, and told as one.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,null,alignment
                      -fno-sanitize-recover=all -fno-omit-frame-pointer
                      # False alarms in instrumented code.
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
elseif(DLOCK_SANITIZE STREQUAL "thread")
  # GCC warns that fences are not modelled; Asio's scheduler has one where a mutex already orders.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  add_link_options(-fsanitize=thread)
elseif(NOT DLOCK_SANITIZE STREQUAL "")
  message(FATAL_ERROR "DLOCK_SANITIZE is '${DLOCK_SANITIZE}': write address or thread, or leave it empty")
endif()
