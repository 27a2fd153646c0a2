// What became of every convolution, as JSON.
#pragma once

#include <string>

namespace kiln::torch {

std::string report();

}  // namespace kiln::torch
