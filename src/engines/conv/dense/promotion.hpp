// How often the dense engines' kernels promote their sums.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"

namespace kiln {

// Steps of `channels` channels between two promotions.
std::int64_t dense_promotion(std::int64_t channels);
// Adds PROMOTE and PROMOTE_LOCAL for sums over `steps` steps of `channels` channels.
void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps,
                         std::int64_t channels);

}  // namespace kiln
