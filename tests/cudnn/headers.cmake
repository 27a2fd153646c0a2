# Every header file compiles when it is the first, in C and C++ of old and new standards, without a
# warning; cudnn.h does without the CUDA toolkit, too.
#   cmake -DFOLDER=... -DCUDA=FOLDER -DCC=... -DCXX=... -P headers.cmake
file(GLOB_RECURSE headers RELATIVE ${FOLDER} ${FOLDER}/*.h)
list(LENGTH headers count)
if(count LESS 7)
  message(FATAL_ERROR "${FOLDER} has ${count} header files; expected cudnn.h and its parts")
endif()

# check(STANDARD HEADER ARGUMENT...)
function(check standard header)
  set(compiler ${CC} -x c)
  if(standard MATCHES "\\+")
    set(compiler ${CXX} -x c++)
  endif()
  execute_process(COMMAND ${compiler} -std=${standard} -Wall -Wextra -Wpedantic -Werror
    -fsyntax-only -I ${FOLDER} ${ARGN} -include ${header} -include cudnn.h /dev/null
    RESULT_VARIABLE status ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${header} does not compile with -std=${standard} ${ARGN}:\n${said}")
  endif()
endfunction()

foreach(standard c99 c11 c++11 c++20)
  foreach(header ${headers})
    check(${standard} ${header} -isystem ${CUDA})
  endforeach()
  check(${standard} cudnn.h)
endforeach()
