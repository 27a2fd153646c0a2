#include "engines/conv/dense/wgrad/definition.hpp"

#include "codegen/constant_writer.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

void add_gradient_definition(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             const Gather& gather) {
  add_split_constants(constants, is_split(problem), least_reduction(problem));
  add_checked_constant(constants, problem, true, false);
  const Gather::Phase& phase = gather.phases.front();
  const ConstantWriter add(constants);
  const auto add_three = [&](const char* const(&names)[3], const Spatial& values) {
    for (std::size_t i = 0; i < 3; ++i) add(names[i], values[i]);
  };
  add_three({"STRIDE_D", "STRIDE_H", "STRIDE_W"}, gather.stride);
  add_three({"STEP_D", "STEP_H", "STEP_W"}, gather.step);  // pixels from tap to tap
  add_three({"SOURCE_D", "SOURCE_H", "SOURCE_W"}, gather.source);
  add("ORIGIN_D", std::vector{phase.origin[0]});
  add("ORIGIN_H", std::vector{phase.origin[1]});
  add("ORIGIN_W", std::vector{phase.origin[2]});
  const Dims &x = gather.source_strides, &dy = gather.out_strides;
  add("SOURCE_STRIDE_N", x[0]);
  add_three({"SOURCE_STRIDE_D", "SOURCE_STRIDE_H", "SOURCE_STRIDE_W"}, {x[2], x[3], x[4]});
  add("OUT_STRIDE_N", dy[0]);
  add_three({"OUT_STRIDE_O", "OUT_STRIDE_P", "OUT_STRIDE_Q"}, {dy[2], dy[3], dy[4]});
  add("index_t", TypeName{"unsigned"});
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value),
                         static_cast<std::uint32_t>(phase.out_pixels())));
  };
  divisor("DIV_OPQ", phase.out_pixels());
  divisor("DIV_PQ", phase.pixels[1] * phase.pixels[2]);
  divisor("DIV_Q", phase.pixels[2]);
}

}  // namespace kiln
