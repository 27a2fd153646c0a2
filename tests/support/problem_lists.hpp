// Paths of lists of problems: in the folder of `kiln bench`'s layers, or in that of the tests.
#pragma once

#include <filesystem>
#include <string>

// name: "paper.txt". KILN_LAYERS and KILN_PROBLEMS are defined for the test program by CMake.
inline std::string problem_list_path(const std::string& name) {
  const std::string layers = KILN_LAYERS "/" + name;
  return std::filesystem::exists(layers) ? layers : KILN_PROBLEMS "/" + name;
}
