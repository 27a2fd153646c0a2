// What the dense engines take. The functions *_refusal return the reason, a clause, why something
// is not possible; "" if it is.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Why the dense engines do not take the problem's type.
Refusal dense_type_refusal(const ConvolutionProblem& problem);

// Why the dense engines do not take the problem in any layout.
Refusal dense_product_refusal(const ConvolutionProblem& problem, const Gather& gather,
                              const DeviceDescription& device);
// Why they do not take it with a channels-last source.
Refusal dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                      const DeviceDescription& device);

// Why TMA cannot store the results or load the residual.
Refusal dense_results_refusal(const ConvolutionProblem& problem, const Gather& gather);
// If dense_results_refusal() has a reason: the number of contiguous, aligned pixels that a thread
// stores at once. Else 0.
std::int64_t dense_store_pixels(const ConvolutionProblem& problem, const Gather& gather);

}  // namespace kiln
