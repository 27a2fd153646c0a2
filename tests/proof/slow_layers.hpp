// Layers of networks whose kernel leaves the tensor cores, or the data that neighbours share,
// unused.
#pragma once

#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace proof {

// Of these problems, the convolutions in 16 bits and TF32 that get `direct`, `implicit_gemm_fma` or
// their like for filter gradients on an H200, with the most workspace that a plan uses: lines of
// engine and problem, sorted.
std::vector<std::string> slow_layers(const std::vector<kiln::Problem>& problems);

// Compares these lines with those of a file, whose other lines are blank or comments: what is new,
// and what is there no longer, in a sentence each.
std::vector<std::string> changes_of_slow_layers(const std::vector<std::string>& slow,
                                                const std::string& file);

}  // namespace proof
