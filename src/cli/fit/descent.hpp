// Minimizes a function of constants without derivatives.
#pragma once

#include <functional>
#include <vector>

namespace kiln::cli::fit {

// Coordinate descent: each constant in turn is multiplied or divided by its own step, which grows
// if that lowers the function and shrinks if it does not, until all steps are below 1%. A constant
// stays within a factor of three of its first value, and 0 stays 0. Changes have a price that grows
// with their size, so a constant that the function hardly depends on stays as it is. Changes
// `constants`, and returns the function's value there.
double descend(std::vector<double>& constants,
               const std::function<double(const std::vector<double>&)>& function);

}  // namespace kiln::cli::fit
