// A report of all convolutions as JSON: who served them, and why.
#pragma once

#include <string>

namespace kiln::torch {

std::string report();

}  // namespace kiln::torch
