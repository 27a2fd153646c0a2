// Makes a function of constants small, without its derivatives.
#pragma once

#include <functional>
#include <vector>

namespace kiln::cli::fit {

// Coordinate descent: each constant in turn is multiplied or divided by a step of its own, which
// grows where that helps and shrinks where it does not, until all steps are below 1%. None gets
// further than a factor of three from where it began, or changes its sign; those that are 0 stay.
// What a change gains must outweigh its own size: a constant that the function hardly depends on
// stays. The least value of the function, with `constants` changed to where it is.
double descend(std::vector<double>& constants,
               const std::function<double(const std::vector<double>&)>& function);

}  // namespace kiln::cli::fit
