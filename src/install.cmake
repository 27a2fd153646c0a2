# What `cmake --install` lays out: the library, the header files, the program with its manual page and
# shell completion, the pages, the licences, and the two ways to be found: a CMake package (find_package(kiln)
# gives kiln::kiln) and kiln.pc for pkg-config. How to use them: samples/README.md.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(KILN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

install(TARGETS kiln EXPORT kiln LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE src/third_party_licenses.txt
  DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/kiln)

install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
  -DOUTPUT=${PROJECT_BINARY_DIR}/pages -P ${PROJECT_SOURCE_DIR}/src/install_pages.cmake
  COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/ DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(KILN_BUILD_CLI)
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES src/cli/completion.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME kiln)
  if(KILN_MANUAL_PAGE)  # src/CMakeLists.txt makes it where help2man is found
    install(FILES ${KILN_MANUAL_PAGE} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endif()

# The library links to nothing that its users would have to find, so the targets are the package.
install(EXPORT kiln NAMESPACE kiln:: FILE kilnConfig.cmake DESTINATION ${KILN_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake DESTINATION ${KILN_PACKAGE_DIR})

# Relative to itself, so that an installed tree may be moved.
file(RELATIVE_PATH KILN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kiln.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@KILN_PC_PREFIX@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: kiln
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -lkiln
")
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What a Python package is packed of (python/pack_build.cmake): for those who ask for it alone.
if(KILN_BUILD_CLI AND KILN_BUILD_TORCH)
  install(TARGETS kiln kiln_torch LIBRARY DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL NAMELINK_SKIP)
  install(TARGETS kiln_cli RUNTIME DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
endif()
