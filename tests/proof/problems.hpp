// The problems that the proof asks about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace proof {

// Of a checkout `source`, each problem once, in this order:
//   the lists of tests/problems (convolutions without flags of their own in every pass, with types,
//   layouts and modes in turns), the layers of src/cli/bench/layers in the same way;
//   what the tables below tests/bench measured;
//   `random` random ones.
// Throws BAD_PARAM that names the file and line of what is no problem, and a list or a folder of
// which nobody says whose command it is.
std::vector<kiln::Problem> all_problems(const std::string& source, std::uint64_t random);

// The layers of networks alone: those of src/cli/bench/layers and of layers.txt, in every pass, in
// 16 bits and TF32 and both layouts, and what the tables below tests/bench measured.
std::vector<kiln::Problem> network_layers(const std::string& source);

}  // namespace proof
