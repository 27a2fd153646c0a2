// Shared by the pooling engines: the constants of window.cuh, and the launch.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

constexpr std::int64_t pooling_threads = 256;  // threads of a block

// Channels of one access; more than 1 if channels are innermost and aligned in all operands.
int pooling_channel_vector(const PoolingProblem& problem, const std::vector<Operand>& operands);

// Whether all taps of all windows lie inside x.
bool every_tap_inside(const PoolingProblem& problem);

// Whether the divisor of the average is not the same for all windows.
bool divisors_differ(const PoolingProblem& problem);

// Positions that the kernels count along dimension i of space: those of x and its padding, and
// those beyond that windows and strides reach.
std::int64_t places_counted(const PoolingProblem& problem, int i);

// `image`: threads for one image, counted plane by plane, with `places_h` rows of `places_w` in a
// plane.
KernelSpec pooling_kernel(const PoolingProblem& problem, const Operand& result, int vector,
                          bool channels_inner, std::int64_t image, std::int64_t places_h,
                          std::int64_t places_w);

LaunchSpec pooling_launch(const PoolingProblem& problem, const std::vector<Operand>& operands,
                          std::int64_t blocks, std::uint32_t shared_memory);

}  // namespace kiln
