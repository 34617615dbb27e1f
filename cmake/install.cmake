# Installed: the library, the C ABI, the public headers, package config, pkg-config files. The tool
# installs itself (tools/CMakeLists.txt).

include(CMakePackageConfigHelpers)

install(TARGETS flugs EXPORT flugs-targets FILE_SET HEADERS)
if(FLUGS_C)
  install(TARGETS flugs_c EXPORT flugs-targets FILE_SET HEADERS)
endif()
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flugs)
install(EXPORT flugs-targets NAMESPACE flugs:: DESTINATION ${config_dir})
configure_package_config_file(cmake/flugs-config.cmake.in flugs-config.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(flugs-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flugs-config.cmake
              ${PROJECT_BINARY_DIR}/flugs-config-version.cmake DESTINATION ${config_dir})

# A static library leaves its own dependencies to whoever links it.
set(FLUGS_PC_PACKAGES "libxxhash, re2, fmt")
if(BUILD_SHARED_LIBS)
  set(FLUGS_PC_REQUIRES "")
else()
  set(FLUGS_PC_REQUIRES ${FLUGS_PC_PACKAGES})
endif()
# Relative, so that the prefix may be moved.
file(RELATIVE_PATH FLUGS_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/flugs.pc.in flugs.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/flugs.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(FLUGS_C)
  configure_file(cmake/flugs_c.pc.in flugs_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/flugs_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
