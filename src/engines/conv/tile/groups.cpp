#include "engines/conv/tile/groups.hpp"

#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {

Refusal half_products_refusal(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (size_of(problem.type()) != 2)
    return cat("the data type is ", name_of(problem.type()), "; this engine takes f16 and bf16");
  if (device.kind != KILN_DEVICE_HOST && device.compute_capability < 80)
    return cat("the architecture is ", device.arch,
               "; mma.sync of 16 x 8 x 16 needs sm_80 or later");
  return {};
}

Refusal warp_products_refusal(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (problem.type() != KILN_DATA_FLOAT) {
    if (size_of(problem.type()) > 2)
      return "the data type is f64; this engine takes f32, f16 and bf16";
    return half_products_refusal(problem, device);
  }
  if (problem.math == KILN_MATH_STRICT)
    return "the math mode is strict, which keeps off the tensor cores";
  if (device.kind != KILN_DEVICE_HOST && device.compute_capability < 80)
    return cat("the architecture is ", device.arch, "; mma.sync of TF32 needs sm_80 or later");
  return {};
}

std::int64_t octets_of(std::int64_t channels) {
  const std::int64_t octets = ceil_div(channels, octet);
  const auto padded = [&](std::int64_t block) { return ceil_div(octets, block) * block; };
  return padded(2 * warp_octets) > padded(warp_octets) ? warp_octets : 2 * warp_octets;
}

}  // namespace kiln
