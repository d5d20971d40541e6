# Install rules: headers, libraries, the command, a CMake package and a pkg-config file, so that both
# `find_package(dlock)` and `pkg-config dlock` know what the (static) libraries need themselves.
include(CMakePackageConfigHelpers)

set(dlock_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dlock)
set(dlock_libraries dlock_core dlock_dlock)
foreach(backend ${dlock_backends})
  list(APPEND dlock_libraries dlock_${backend})
endforeach()

if(TARGET dlock_testing)
  list(APPEND dlock_libraries dlock_testing)
endif()

install(TARGETS ${dlock_libraries} EXPORT dlock-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dlock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The pages, and whatever they link to, in the folders of the source tree.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN models EXCLUDE)
# Also the pages of backends that this build leaves out: other pages link to them.
file(GLOB dlock_folder_pages RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/backends/*/README.md ${PROJECT_SOURCE_DIR}/compare/README.md)
foreach(page ${dlock_folder_pages})
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(command dlock dlock_cli dlock-compare)
  if(TARGET ${command})
    get_target_property(type ${command} TYPE)
    if(type STREQUAL EXECUTABLE)
      install(TARGETS ${command} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
  endif()
endforeach()

# The package for CMake. Minor versions may break before 1.0.
install(EXPORT dlock-targets NAMESPACE dlock:: DESTINATION ${dlock_package_dir})
if(BUILD_SHARED_LIBS)
  set(dlock_is_static FALSE)
else()
  set(dlock_is_static TRUE)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/dlock-config.cmake.in
  ${PROJECT_BINARY_DIR}/dlock-config.cmake INSTALL_DESTINATION ${dlock_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dlock-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dlock-config.cmake
  ${PROJECT_BINARY_DIR}/dlock-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/dlock-externals.cmake DESTINATION ${dlock_package_dir})

# For authors of backends, and only where the tests are built: the contract suite.
if(TARGET dlock_contract)
  install(TARGETS dlock_contract dlock_contract_whole EXPORT dlock-contract-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT dlock-contract-targets NAMESPACE dlock:: DESTINATION ${dlock_package_dir})
endif()

# The file for pkg-config. A static library does not know what it needs, so all of it is public
# then; a shared one does.
set(dlock_pc_libs "-ldlock")
foreach(backend ${dlock_backends})
  string(APPEND dlock_pc_libs " -ldlock_${backend}")
endforeach()
string(APPEND dlock_pc_libs " -ldlock_core")
set(dlock_pc_packages "fmt spdlog yaml-cpp")
set(dlock_pc_system_libs "-lboost_url -lpthread")
if(DLOCK_BACKEND_ZOOKEEPER)
  string(APPEND dlock_pc_system_libs " -l:libzookeeper_st.a")
endif()
if(DLOCK_BACKEND_REDIS)
  string(APPEND dlock_pc_system_libs " -lhiredis -lssl -lcrypto")
endif()
if(DLOCK_BACKEND_MEMCACHED)
  string(APPEND dlock_pc_system_libs " -lmemcached")
endif()
if(BUILD_SHARED_LIBS)
  set(dlock_pc_needs
    "Libs: -L\${libdir} ${dlock_pc_libs}\nRequires.private: ${dlock_pc_packages}\nLibs.private: ${dlock_pc_system_libs}")
else()
  set(dlock_pc_needs
    "Libs: -L\${libdir} ${dlock_pc_libs} ${dlock_pc_system_libs}\nRequires: ${dlock_pc_packages}")
endif()
# From the file's own place up to the prefix: the installed tree may be moved.
file(RELATIVE_PATH dlock_pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/dlock.pc.in ${PROJECT_BINARY_DIR}/dlock.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dlock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET dlock_testing)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/dlock-testing.pc.in
    ${PROJECT_BINARY_DIR}/dlock-testing.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/dlock-testing.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
