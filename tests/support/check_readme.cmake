# README.md is short, its program is samples/first_plan.cpp to the letter, its two commands are
# there, and it counts as many activations as there are.
#   cmake -DSOURCE=<the repository's folder> -P check_readme.cmake
file(READ ${SOURCE}/README.md readme)
file(READ ${SOURCE}/samples/first_plan.cpp program)

string(FIND "${readme}" "```cpp\n${program}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the program in README.md differs from samples/first_plan.cpp")
endif()
string(REGEX MATCHALL "\n" newlines "${program}")
list(LENGTH newlines count)
if(count GREATER 15)
  message(FATAL_ERROR "samples/first_plan.cpp has ${count} lines; expected at most 15")
endif()

# Words as `wc -w` counts them. A semicolon would divide an element of CMake's list.
string(REPLACE ";" "," text "${readme}")
string(REGEX MATCHALL "[^ \t\n]+" words "${text}")
list(LENGTH words count)
if(NOT count LESS 1000)
  message(FATAL_ERROR "README.md has ${count} words; expected fewer than 1,000")
endif()

foreach(command "bash samples/quickstart.sh" "bash tests/run.sh")
  string(FIND "${readme}" "\n    ${command} " at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md lacks the command ${command}")
  endif()
endforeach()

file(STRINGS ${SOURCE}/include/kiln/activation.h modes REGEX "^  KILN_ACTIVATION_[A-Z_]+ = ")
list(LENGTH modes count)
string(FIND "${readme}" "| ${count} activations; " at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md's matrix lacks '${count} activations', which kiln/activation.h has")
endif()
