#include "cli/bench/lowered_product.hpp"

#include "core/error.hpp"

namespace kiln::cli::bench {

LoweredProduct lowered_product(const ConvolutionProblem& problem, bool nhwc) {
  constexpr auto filter = LoweredProduct::filter, lowered = LoweredProduct::lowered,
                 image = LoweredProduct::image;
  const std::int64_t k = problem.out_channels, crs = problem.in_channels * problem.taps();
  const std::int64_t p = problem.batch * problem.out_pixels();
  switch (problem.pass) {
    case ConvolutionPass::fprop:
      if (nhwc) return {true, false, k, p, crs, crs, crs, k, filter, lowered, image};
      return {false, false, p, k, crs, p, crs, p, lowered, filter, image};
    case ConvolutionPass::dgrad:
      if (nhwc) return {false, false, crs, p, k, crs, k, crs, filter, image, lowered};
      return {false, true, p, crs, k, p, crs, p, image, filter, lowered};
    case ConvolutionPass::wgrad:
      if (nhwc) return {false, true, crs, k, p, crs, k, crs, lowered, image, filter};
      return {true, false, crs, k, p, p, p, crs, lowered, image, filter};
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "no product of this pass");
}

}  // namespace kiln::cli::bench
