# Run by CTest; see CMakeLists.txt. Fails on the first command that does.
cmake_policy(VERSION 3.22)
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
set(ENV{KILN_CACHE_DIR} ${WORK}/cache)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# output_of(OUT COMMAND...): what a command prints.
function(output_of out)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT "${text}" MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern}, found\n${text}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --strip)

# ---- what lies there ----------------------------------------------------------------------------

# What was promised of the library: small, and dependent on no CUDA library.
set(library ${prefix}/${LIBDIR}/libkiln.so.${VERSION})
file(SIZE ${library} bytes)
if(bytes GREATER 5000000)
  message(FATAL_ERROR "${library} has ${bytes} bytes; expected at most 5000000")
endif()
output_of(dynamic readelf -d ${library})
if(dynamic MATCHES "NEEDED[^\n]*(libcu|libnv)[^\n]*")
  message(FATAL_ERROR "${library} links to a CUDA library: ${CMAKE_MATCH_0}")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" abi ${VERSION})
expect("${dynamic}" "SONAME[^\n]*libkiln\\.so\\.${abi}\\]")

# It exports the functions of kiln.h, all of them and nothing else.
output_of(symbols nm -D --defined-only ${library})
string(REGEX MATCHALL "[^ \n]+(\n|$)" symbols "${symbols}")
list(TRANSFORM symbols STRIP)
set(header "")
file(GLOB headers ${prefix}/include/kiln/*.h)
foreach(file ${headers})
  file(READ ${file} text)
  string(APPEND header "${text}")
endforeach()
string(REGEX REPLACE "/\\*([^*]|\\*[^/])*\\*+/" "" header "${header}")
string(REGEX MATCHALL "kiln[A-Z][A-Za-z0-9]*\\(" functions "${header}")
list(TRANSFORM functions REPLACE "\\($" "")
list(REMOVE_DUPLICATES functions)
list(SORT functions)
list(SORT symbols)
if(NOT symbols STREQUAL functions)
  set(leaked ${symbols})
  list(REMOVE_ITEM leaked ${functions})
  list(REMOVE_ITEM functions ${symbols})
  message(FATAL_ERROR "${library} exports beside the functions of kiln.h \"${leaked}\" and lacks \"${functions}\"")
endif()

# Nothing of the machine that built it: neither a run path nor a folder.
foreach(binary ${library} ${prefix}/bin/kiln)
  output_of(dynamic readelf -d ${binary})
  if(dynamic MATCHES "R(UN)?PATH[^\n]*")
    message(FATAL_ERROR "${binary} has a run path: ${CMAKE_MATCH_0}")
  endif()
  file(STRINGS ${binary} folders REGEX "${BUILD}")
  if(folders)
    message(FATAL_ERROR "${binary} names the folder in which it was built: ${folders}")
  endif()
endforeach()

file(READ ${prefix}/share/licenses/kiln/third_party_licenses.txt licences)
foreach(name spdlog {fmt} xxHash "JSON for Modern C\\+\\+" CLI11 Boost)
  expect("${licences}" "\n${name}")
endforeach()
expect("${licences}" "Boost Software License")

# The tree is moved before use: nothing in it may remember where it was installed.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)

# ---- the program --------------------------------------------------------------------------------

set(kiln ${prefix}/bin/kiln)
output_of(version ${kiln} --version)
expect("${version}" "^kiln ${VERSION} \\((commit [0-9a-f]+(-dirty)?, )?built with CUDA 1[23]\\.[0-9]+\\)$")
if(HELP2MAN)
  file(READ ${prefix}/share/man/man1/kiln.1 manual)
  expect("${manual}" "prewarm")
  expect("${manual}" "lineinfo")  # an option of a command
endif()

# Every link of an installed page leads to a file that is there. No semicolons: CMake splits at them.
output_of(lost bash -c "cd '${prefix}/share/doc/kiln' && test -s README.md && find . -name '*.md' |
  while read -r page
  do
    grep -oE '\\]\\([^)#]+' \"$page\" | cut -c3- | grep -vE '^[a-z]+:' | while read -r target
    do
      [ -e \"$(dirname \"$page\")/$target\" ] || echo \"$page: $target\"
    done
  done")
expect("${lost}" "^$")

# completion(OUT WORD...): what bash would offer for the last of these words.
function(completion out)
  string(JOIN "' '" words ${ARGN})
  output_of(offered bash -c "source '${prefix}/share/bash-completion/completions/kiln'
    PATH='${prefix}/bin':$PATH COMP_WORDS=('${words}') COMP_CWORD=\$((\${#COMP_WORDS[@]} - 1))
    _kiln
    echo \"\${COMPREPLY[*]}\"")
  set(${out} "${offered}" PARENT_SCOPE)
endfunction()
completion(offered kiln pre)
expect("${offered}" "^prewarm$")
completion(offered kiln cache cl)
expect("${offered}" "^clear$")
completion(offered kiln conv --chec)
expect("${offered}" "^--check$")
completion(offered kiln conv --act mi)
expect("${offered}" "^mish$")
completion(offered kiln inspect --arch h100-)
expect("${offered}" "^h100-pcie$")
completion(offered kiln conv --engine local_)
expect("${offered}" "local_direct")
completion(offered kiln conv --dt bf)
expect("${offered}" "^bf16$")

# NVRTC where NVIDIA's wheel lays it in a virtual environment; and the one that a process has loaded.
if(NVRTC_FOLDER)
  set(wheel ${WORK}/venv/lib/python3.11/site-packages/nvidia/cu13/lib)
  file(MAKE_DIRECTORY ${wheel} ${WORK}/loaded)
  file(GLOB libraries ${NVRTC_FOLDER}/libnvrtc.so.1? ${NVRTC_FOLDER}/libnvrtc-builtins.so.*)
  foreach(file ${libraries})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${wheel}/${name} SYMBOLIC)
    file(CREATE_LINK ${file} ${WORK}/loaded/${name} SYMBOLIC)
  endforeach()
  file(GLOB nvrtc RELATIVE ${wheel} ${wheel}/libnvrtc.so.1?)
  set(bare ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH --unset=CUDA_HOME --unset=CUDA_PATH
    --unset=KILN_NVRTC --unset=PYTHONPATH VIRTUAL_ENV=${WORK}/venv)
  output_of(facts ${bare} ${kiln} info --json)
  string(JSON found GET "${facts}" compilers nvrtc description)
  expect("${found}" "^NVRTC 1[23]\\.[0-9]+\\.[0-9]+, ${wheel}/${nvrtc}$")
  run(${bare} ${kiln} inspect --arch sm_80 --emit ptx -o ${WORK}/kernel.ptx mb1ic3ih6oc4kh3)  # it works
  output_of(facts ${bare} LD_PRELOAD=${WORK}/loaded/${nvrtc} ${kiln} info --json)
  string(JSON found GET "${facts}" compilers nvrtc description)
  expect("${found}" "^NVRTC 1[23]\\.[0-9]+\\.[0-9]+, ${WORK}/loaded/${nvrtc}$")
endif()

# ---- the Python package, packed of the same build ------------------------------------------------

set(package ${WORK}/package/kiln)
function(pack build)
  run(${CMAKE_COMMAND} -E env KILN_BUILD_DIR=${build} ${CMAKE_COMMAND} -S ${SOURCE}/src/python -B ${WORK}/packing)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${WORK}/packing --component python --prefix ${WORK}/package
    ERROR_VARIABLE complaint)
  set(complaint "${complaint}" PARENT_SCOPE)
endfunction()
pack(${WORK})
expect("${complaint}" "KILN_BUILD_DIR is ${WORK}, which has no")
pack(${BUILD})
expect("${complaint}" "^$")
file(GLOB_RECURSE files RELATIVE ${package} ${package}/*)
if(NOT "${files}" STREQUAL "LICENSE;bin/kiln;lib/libkiln.so.${abi};lib/libkiln_torch.so")
  message(FATAL_ERROR "the Python package has ${files}")
endif()
output_of(version ${package}/bin/kiln --version)
expect("${version}" "^kiln ${VERSION} ")
output_of(dynamic readelf -d ${package}/lib/libkiln_torch.so)
expect("${dynamic}" "R(UN)?PATH[^\n]*\\[\\$ORIGIN\\]")
file(SIZE ${package}/lib/libkiln.so.${abi} bytes)
if(bytes GREATER 5000000)
  message(FATAL_ERROR "the package's libkiln has ${bytes} bytes; expected at most 5000000")
endif()

# ---- consumers ----------------------------------------------------------------------------------

# configure(FOLDER LANGUAGES FROM [ARGUMENT...])
function(configure folder languages from)
  message(STATUS "through ${from}: ${languages}")
  run(${CMAKE_COMMAND} --no-warn-unused-cli -S ${CONSUMER} -B ${folder} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} "-DKILN_LANGUAGES=${languages}"
    -DKILN_FROM=${from} ${ARGN})
endfunction()

foreach(name C C_and_CXX)
  string(REPLACE _and_ "\\;" languages ${name})
  set(folder ${WORK}/find_package_${name})
  configure(${folder} "${languages}" find_package -DCMAKE_PREFIX_PATH=${prefix}
    -DKILN_EXPECTED_VERSION=${VERSION})
  run(${CMAKE_COMMAND} --build ${folder})
  run(${folder}/consumer_c)
endforeach()
run(${folder}/consumer_cpp)

message(STATUS "through pkg-config")
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
output_of(flags ${PKG_CONFIG} --cflags --libs "kiln = ${VERSION}")
output_of(folder ${PKG_CONFIG} --variable=libdir kiln)
separate_arguments(flags UNIX_COMMAND "${flags}")
set(warnings -Wall -Wextra -Wpedantic -Werror)
run(${CC} -std=c99 ${warnings} ${CONSUMER}/consumer.c -o ${WORK}/pc_c ${flags} -Wl,-rpath,${folder})
run(${CXX} -std=c++20 ${warnings} ${CONSUMER}/consumer.cpp -o ${WORK}/pc_cpp ${flags}
  -Wl,-rpath,${folder})
run(${WORK}/pc_c)
run(${WORK}/pc_cpp)

execute_process(COMMAND ${CXX} -std=c++17 -fsyntax-only ${CONSUMER}/consumer.cpp ${flags}
  ERROR_VARIABLE complaint RESULT_VARIABLE status)
if(status EQUAL 0)
  message(FATAL_ERROR "kiln.hpp is taken as C++17")
endif()
expect("${complaint}" "kiln.hpp needs C\\+\\+20")

# A program of the cuDNN API: the library has cuDNN's name, and finds Kiln's by where it lies itself.
set(cudnn ${prefix}/share/kiln/cudnn)
output_of(dynamic readelf -d ${cudnn}/lib/libcudnn.so.9)
expect("${dynamic}" "SONAME[^\n]*libcudnn\\.so\\.9\\]")
expect("${dynamic}" "R(UN)?PATH[^\n]*\\[\\$ORIGIN/[./]*/${LIBDIR}\\]")
run(${CC} -std=c99 ${warnings} ${CONSUMER}/cudnn.c -o ${WORK}/cudnn -I${cudnn}/include
  -L${cudnn}/lib -lcudnn -Wl,-rpath,${cudnn}/lib)
run(${CMAKE_COMMAND} -E env KILN_CUDNN_DEVICE=host ${WORK}/cudnn)

# Inside another project. The library is the same as was installed, and compiling it again takes
# minutes: here the consumers are compiled, and with KILN_TEST_FULL=1 all is built and run.
foreach(from add_subdirectory FetchContent)
  set(folder ${WORK}/${from})
  configure(${folder} "C\;CXX" ${from} -DKILN_SOURCE=${SOURCE} -DKILN_CUDA_ROOT=${CUDA_ROOT}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
  file(READ ${folder}/CMakeCache.txt options)
  foreach(option CLI CUDNN TESTS SAMPLES)
    expect("${options}" "KILN_BUILD_${option}:BOOL=OFF")  # the library alone
  endforeach()
  if("$ENV{KILN_TEST_FULL}" STREQUAL 1)
    run(${CMAKE_COMMAND} --build ${folder})
    run(${folder}/consumer_c)
    run(${folder}/consumer_cpp)
  elseif(GENERATOR STREQUAL Ninja)
    run(${CMAKE_COMMAND} --build ${folder} --target CMakeFiles/consumer_c.dir/consumer.c.o
      CMakeFiles/consumer_cpp.dir/consumer.cpp.o)
  endif()
endforeach()
