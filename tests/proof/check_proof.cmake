# Whether the program `proof` sees what it is there to see, on a share of the problems: a run on one
# thread prints the same as one on several; a changed constant of a kernel changes texts and nothing
# else; another number of multiprocessors changes launches.
cmake_policy(VERSION 3.20)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/kernels/common)

# Sets ${out} to the lines that the program prints for every ${every}th problem.
function(ask out every)
  execute_process(COMMAND ${PROOF} --random 40 --every ${every} ${ARGN} OUTPUT_VARIABLE lines
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROOF} ${ARGN} ends with ${status}")
  endif()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()
# Sets ${out} to the lines without one field's values.
function(without out field lines)
  string(REGEX REPLACE " ${field} [^ \n]+" "" lines "${lines}")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

ask(before 150 --chips sm_80,sm_90a)
ask(again 150 --chips sm_80,sm_90a --threads 1)
if(NOT before STREQUAL again)
  message(SEND_ERROR "one thread prints other lines than several")
endif()
string(REGEX MATCHALL "\n" count "${before}")
list(LENGTH count count)
if(count LESS 100)
  message(SEND_ERROR "${count} lines; expected at least 100")
endif()

# One constant of a kernel, in a folder of edited files.
set(constant 0x1.988454p+0f)  # of GELU_TANH's, in f32
file(READ ${KERNELS}/common/logistic.cuh text)
string(REPLACE ${constant} 0.044716 edited "${text}")
if(edited STREQUAL text)
  message(SEND_ERROR "common/logistic.cuh has no ${constant}")
endif()
file(WRITE ${FOLDER}/kernels/common/logistic.cuh "${edited}")
set(ENV{KILN_KERNEL_SOURCE_DIR} ${FOLDER}/kernels)
ask(planted 150 --chips sm_80,sm_90a)
unset(ENV{KILN_KERNEL_SOURCE_DIR})
if(planted STREQUAL before)
  message(SEND_ERROR "a changed constant of a kernel is not seen")
endif()
foreach(lines before planted)
  without(rest text "${${lines}}")
  without(${lines}_rest stand-in "${rest}")
endforeach()
if(NOT planted_rest STREQUAL before_rest)
  message(SEND_ERROR "a changed constant of a kernel changes more than texts")
endif()

# Another number of multiprocessors.
ask(whole 150 --chips sm_90a)
ask(half 150 --chips sm_90a:66)
string(REPLACE "sm_90a:66 " "sm_90a " half "${half}")
foreach(lines whole half)
  without(${lines} estimate "${${lines}}")
endforeach()
if(half STREQUAL whole)
  message(SEND_ERROR "half of the multiprocessors change no launch")
endif()

# What engines answer, and one line in full.
ask(engines 1000 --engines --chips sm_90a)
if(NOT engines MATCHES "sm_90a [a-z0-9_]+ conv [^\n]*: candidates [0-9]+ answer [0-9a-f]+ launch ")
  message(SEND_ERROR "no engine has candidates:\n${engines}")
endif()
string(REGEX MATCH "^[^\n]*" line "${before}")
execute_process(COMMAND ${PROOF} --show "${line}" OUTPUT_VARIABLE shown RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT shown MATCHES "== choice\n.*== launch\ngrid .*== text\n")
  message(SEND_ERROR "--show \"${line}\" ends with ${status} and prints:\n${shown}")
endif()
