// What the pooling kernels share: the constants of window.cuh, and the launch.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

constexpr std::int64_t pooling_threads = 256;  // a block

// Channels of one access: all operands have them innermost, and runs of them aligned to their size.
int pooling_channel_vector(const PoolingProblem& problem, const std::vector<Operand>& operands);

// Whether every tap of every window lies in x.
bool every_tap_inside(const PoolingProblem& problem);

// Whether an average's divisor differs from window to window.
bool divisors_differ(const PoolingProblem& problem);

// Places that the kernels count along a dimension of space: those of x, of its padding, and those
// that windows and strides reach beyond.
std::int64_t places_counted(const PoolingProblem& problem, int i);

// `image`: the threads that take one image, which are counted plane by plane, each of them
// `places_h` rows high.
KernelSpec pooling_kernel(const PoolingProblem& problem, const Operand& result, int vector,
                          bool channels_inner, std::int64_t image, std::int64_t places_h);

LaunchSpec pooling_launch(const PoolingProblem& problem, const std::vector<Operand>& operands,
                          std::int64_t blocks, std::uint32_t shared_memory);

}  // namespace kiln
