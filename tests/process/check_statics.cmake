# No static variable of the library is made behind a guard, destroyed at the end of the process or of
# a thread, or made when the library is loaded; and std::call_once is not used.
cmake_policy(VERSION 3.20)
foreach(file ${ARCHIVES} ${LIBRARY})
  execute_process(COMMAND ${NM} -C ${file} OUTPUT_VARIABLE symbols RESULT_VARIABLE status
    ERROR_QUIET)
  if(NOT status EQUAL 0 OR NOT symbols MATCHES "kiln")
    message(FATAL_ERROR "${NM} does not read ${file}")
  endif()
  string(REGEX MATCHALL "[^\n]*(guard variable for kiln|_GLOBAL__sub_I|__cxa_thread_atexit)[^\n]*"
    found "${symbols}")
  if(file IN_LIST ARCHIVES)
    string(REGEX MATCHALL "[^\n]*(U __cxa_atexit|U __cxa_guard_acquire)[^\n]*" more "${symbols}")
    list(APPEND found ${more})
  endif()
  foreach(symbol ${found})
    message(SEND_ERROR "${file} has ${symbol}; see src/core/process/per_process.hpp")
  endforeach()
endforeach()
