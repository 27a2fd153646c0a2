# Several source files compiled as one, because most of what one takes is the headers that the next one
# includes too. CMake's own unity build takes files as they come; here .ci/sources.py chooses those in
# which no name that one keeps to itself means anything in another.
option(KILN_UNITY "Compile source files in groups: a whole build is quicker, that of one file's edit slower" OFF)
set(KILN_UNITY_SIZE 8 CACHE STRING "Files of a group at most")
mark_as_advanced(KILN_UNITY_SIZE)
find_program(KILN_PYTHON python3)

# kiln_unity(TARGET): after the properties of its files are set.
function(kiln_unity target)
  if(NOT KILN_UNITY OR NOT KILN_PYTHON)
    return()
  endif()
  get_target_property(listed ${target} SOURCES)
  set(files)
  foreach(file ${listed})
    get_filename_component(file ${file} ABSOLUTE)
    get_source_file_property(generated ${file} GENERATED)
    get_source_file_property(apart ${file} SKIP_PRECOMPILE_HEADERS)
    if(file MATCHES "\\.cpp$" AND NOT generated AND NOT apart)
      list(APPEND files ${file})
    endif()
  endforeach()
  # The groups of the last time stay, as far as they still fit.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/groups)
  execute_process(COMMAND ${KILN_PYTHON} ${PROJECT_SOURCE_DIR}/.ci/sources.py groups
      --size ${KILN_UNITY_SIZE} --state ${PROJECT_BINARY_DIR}/groups/${target}
      --apart ${PROJECT_BINARY_DIR}/groups/apart ${files}
    OUTPUT_VARIABLE groups RESULT_VARIABLE failed)
  if(failed)
    message(WARNING "${target} is compiled file by file: .ci/sources.py failed")
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(group ${groups})
    string(REPLACE " " ";" group ${group})
    list(LENGTH group count)
    if(count GREATER 1)
      # Named by its first file, so that the other groups keep their names when one comes or goes.
      list(GET group 0 name)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${name})
      string(REGEX REPLACE "[^A-Za-z0-9]" "_" name ${name})
      set_source_files_properties(${group} PROPERTIES UNITY_GROUP ${name})
    endif()
  endforeach()
endfunction()
