# Which folders may include which: families of convolution engines, and of their kernels, know what they
# share and not each other; nothing below the choice knows it.
#   cmake -DSOURCE=<the repository's folder> -P check_walls.cmake
#   cmake -DSOURCE=... -DPLANT=1 -P check_walls.cmake    the same with an include that is not allowed
cmake_policy(VERSION 3.20)

set(found "")

# The includes of all files of a folder, as FILE>INCLUDE, both below the folder that includes begin at.
function(read_includes base folder out)
  file(GLOB_RECURSE files RELATIVE ${SOURCE}/${base} ${SOURCE}/${base}/${folder}/*)
  set(includes "")
  foreach(file IN LISTS files)
    if(NOT file MATCHES "\\.(cpp|hpp|cu|cuh|h)$")
      continue()
    endif()
    file(STRINGS ${SOURCE}/${base}/${file} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "${file}>\\1" include "${line}")
      list(APPEND includes "${include}")
    endforeach()
  endforeach()
  set(${out} "${includes}" PARENT_SCOPE)
endfunction()

# Adds to `found` what files that match `from` include that begins with `prefix` and does not match
# `allowed`.
function(look includes from prefix allowed why)
  foreach(include IN LISTS ${includes})
    string(REGEX MATCH "^([^>]*)>(.*)$" all "${include}")
    set(file "${CMAKE_MATCH_1}")
    set(target "${CMAKE_MATCH_2}")
    if(file MATCHES "${from}" AND target MATCHES "^${prefix}" AND NOT target MATCHES "${allowed}")
      list(APPEND found "${file} includes ${target}: ${why}")
    endif()
  endforeach()
  set(found "${found}" PARENT_SCOPE)
endfunction()

# Every folder of `folder` that is not shared: it may include itself and what is shared.
function(look_at_families includes base folder shared allowed)
  string(REPLACE "|" ", " names "${shared}")
  file(GLOB families RELATIVE ${SOURCE}/${base}/${folder} ${SOURCE}/${base}/${folder}/*)
  foreach(family IN LISTS families)
    if(IS_DIRECTORY ${SOURCE}/${base}/${folder}/${family} AND NOT family MATCHES "^(${shared})$")
      look(${includes} "^${folder}/${family}/" "${folder}/" "^${folder}/((${family}|${shared})/|${allowed})"
        "families share only what lies in ${names}")
    endif()
  endforeach()
  look(${includes} "^${folder}/(${shared})/" "${folder}/" "^${folder}/((${shared})/|${allowed})"
    "what families share knows no family")
  set(found "${found}" PARENT_SCOPE)
endfunction()

read_includes(src engines host)
read_includes(kernel_sources conv kernels)
if(PLANT)
  list(APPEND host "engines/conv/halo/planted.cpp>engines/conv/dense/dense_wgmma.hpp"
    "engines/conv/tile/planted.cpp>engines/conv/halo/refusal.hpp" "engines/conv/halo/planted.cpp>engines/choice.hpp"
    "engines/pooling/planted.cpp>engines/rewrite/cut.hpp" "engines/rewrite/planted.cpp>engines/choice.hpp")
  list(APPEND kernels "conv/halo/planted.cuh>conv/dense/tile.cuh")
endif()

look_at_families(host src engines/conv "tile|recipe|filter_gradient|maps|channel_sums|relayout" "gather\\.hpp$")
look_at_families(kernels kernel_sources conv "geometry|load|mma|store|channel_sums" "none$")
# rewrite, stand_in and the choice itself stand above all engines, the choice above rewrites too.
look(host "^engines/(conv|cost|local|normalization|pointwise|pooling|reduction|softmax)/" "engines/"
  "^engines/(conv|cost|local|normalization|pointwise|pooling|reduction|softmax|common)/|^engines/(engine|names|recent_problems)\\.hpp$"
  "engines do not know the choice, rewrites and stand-ins")

look(host "^engines/rewrite/" "engines/"
  "^engines/(conv|cost|rewrite)/|^engines/(engine|method|grant)\\.hpp$"
  "rewrites are given what chooses for their problems")

if(found)
  list(LENGTH found count)
  list(JOIN found "\n  " lines)
  message(FATAL_ERROR "${count} includes are not allowed:\n  ${lines}")
endif()
