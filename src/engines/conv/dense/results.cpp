// Whether TMA or threads store the results of the dense engines.
#include <array>
#include <numeric>

#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/maps/map_refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"

namespace kiln {

Refusal dense_results_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (auto refused = map_strides_refusal(problem.pass == ConvolutionPass::dgrad ? "dx" : "y",
                                         problem.type(), gather.out_strides))
    return refused;
  if (problem.epilogue.residual) {
    if (gather.phases.size() > 1) return "a residual of a strided data gradient";
    if (auto refused = map_strides_refusal("z", problem.type(), problem.z_strides)) return refused;
  }
  return {};
}

std::int64_t dense_store_pixels(const ConvolutionProblem& problem, const Gather& gather) {
  if (!dense_results_refusal(problem, gather)) return 0;
  const Spatial& pixels = gather.phases.front().pixels;
  const auto lie = [&](const Dims& strides) {
    std::int64_t next = 1;
    for (const int i : {2, 1, 0}) {
      if (pixels[i] > 1 && strides[2 + i] != next) return std::int64_t{1};
      next *= pixels[i];
    }
    return std::gcd(std::gcd(next, strides[0]), strides[1]);
  };
  if (gather.phases.size() > 1) return 1;
  return std::gcd(std::gcd(lie(gather.out_strides), lie(gather.z_strides)),
                  dense_vector(problem.type()));
}

}  // namespace kiln
