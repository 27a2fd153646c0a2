# Run by CTest; see CMakeLists.txt. Fails on the first command that does.
cmake_policy(VERSION 3.22)
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
set(ENV{KILN_CACHE_DIR} ${WORK}/cache)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --strip)

# What was promised of the library: small, and dependent on no CUDA library.
set(library ${prefix}/${LIBDIR}/libkiln.so.${VERSION})
file(SIZE ${library} bytes)
if(bytes GREATER 5000000)
  message(FATAL_ERROR "${library} has ${bytes} bytes; expected at most 5000000")
endif()
execute_process(COMMAND readelf -d ${library} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(dynamic MATCHES "NEEDED[^\n]*(libcu|libnv)[^\n]*")
  message(FATAL_ERROR "${library} links to a CUDA library: ${CMAKE_MATCH_0}")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" abi ${VERSION})
if(NOT dynamic MATCHES "SONAME[^\n]*libkiln\\.so\\.${abi}\\]")
  message(FATAL_ERROR "the soname of ${library} is not libkiln.so.${abi}:\n${dynamic}")
endif()
run(${prefix}/bin/kiln --version)

# The tree is moved before use: nothing in it may remember where it was installed.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)

message(STATUS "through find_package")
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DKILN_EXPECTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer_c)
run(${WORK}/build/consumer_cpp)

message(STATUS "through pkg-config")
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs "kiln = ${VERSION}"
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(flags UNIX_COMMAND "${flags}")
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
run(${CC} -std=c99 -Wall -Wextra -Wpedantic -Werror ${CONSUMER}/consumer.c -o ${WORK}/pc_c ${flags})
run(${CXX} -std=c++20 -Wall -Wextra -Wpedantic -Werror ${CONSUMER}/consumer.cpp -o ${WORK}/pc_cpp ${flags})
run(${WORK}/pc_c)
run(${WORK}/pc_cpp)
