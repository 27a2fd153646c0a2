// What of the dense engines' domain has been seen on hardware: right, and its time as estimated.
#pragma once

#include <string>

#include "problem/problem.hpp"

namespace kiln {

// Why the choice passes over the dense engines for a problem that they take, a clause; "" if it
// does not. Whoever has measured what a line of this function names deletes the line.
std::string dense_only_by_name(const Problem& problem);

}  // namespace kiln
