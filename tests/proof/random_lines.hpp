// Random problems as lines: their command, flags and problem.
#pragma once

#include <cstdint>
#include <string>

namespace proof {

// The same line for a number on every machine: the random numbers are our own, because the
// standard library's distributions differ between its makers. Each line depends on its number
// alone.
std::string random_line(std::uint64_t number);

}  // namespace proof
