# Lays a build that exists into the package, by the build's own rules of installation (src/install.cmake),
# which take away what names folders of this machine. Needs `build`, its folder, and `checkout`.
cmake_policy(VERSION 3.22)
file(READ ${checkout}/include/kiln/status.h header)
foreach(part MAJOR MINOR PATCH)
  string(REGEX MATCH "KILN_VERSION_${part} ([0-9]+)" _ "${header}")
  set(${part} ${CMAKE_MATCH_1})
endforeach()

set(package ${CMAKE_INSTALL_PREFIX}/kiln)
set(staged ${package}/staged)
if(EXISTS ${build}/cmake_install.cmake)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --component python --strip --prefix ${staged}
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
endif()
# A wheel holds no links: libkiln has the one name that is looked for.
foreach(pair lib/libkiln.so.${MAJOR}.${MINOR}.${PATCH}=lib/libkiln.so.${MAJOR}.${MINOR}
    lib/libkiln_torch.so=lib/libkiln_torch.so bin/kiln=bin/kiln)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 from)
  list(GET pair 1 to)
  if(NOT EXISTS ${staged}/${from})
    file(REMOVE_RECURSE ${staged})
    message(FATAL_ERROR "KILN_BUILD_DIR is ${build}, which has no ${from} of this release to install; expected a "
      "build folder after: cmake --build ${build} --target kiln kiln_torch kiln_cli\n${output}")
  endif()
  get_filename_component(folder ${package}/${to} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${staged}/${from} ${package}/${to})
endforeach()
file(REMOVE_RECURSE ${staged})
