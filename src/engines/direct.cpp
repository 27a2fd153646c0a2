#include "engines/direct.hpp"

#include <limits>

#include "conv/forward_params.h"
#include "core/text.hpp"
#include "engines/forward_constants.hpp"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;

KernelSpec make_spec(const ConvolutionProblem& problem) {
  KernelSpec spec;
  spec.engine = "direct";
  spec.file = "conv/direct.cu";
  spec.entry = "direct_forward";
  spec.tile = "1 output a thread, 256 threads";
  spec.alignment = size_of(problem.type);
  spec.alignment = size_of(problem.type);
  spec.constants = forward_constants(problem);

  // Kernels count the outputs of one image, plus a block's worth of the next.
  const std::int64_t image_outputs = problem.out_channels * problem.out_pixels();
  const bool wide = image_outputs + threads > std::numeric_limits<std::int32_t>::max();
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(image_outputs + threads)));
  };
  const bool inner = problem.y_strides[1] == 1 && problem.out_channels > 1;
  add("OUTPUT_CHANNELS_INNER", inner);
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  add("BLOCK_DIV_KOPQ", make_wide_magic(static_cast<std::uint64_t>(image_outputs)));
  add_divisor("DIV_KOPQ", image_outputs);
  add_divisor("DIV_K", problem.out_channels);
  add_divisor("DIV_OPQ", problem.out_pixels());
  add_divisor("DIV_PQ", problem.out[1] * problem.out[2]);
  add_divisor("DIV_Q", problem.out[2]);
  add_divisor("DIV_FILTERS", problem.group_out());
  return spec;
}

}  // namespace

std::variant<Proposal, Refusal> DirectEngine::propose(const Problem& any,
                                                      const DeviceDescription&) const {
  const auto* problem = std::get_if<ConvolutionProblem>(&any);
  if (!problem) return Refusal{"not a forward convolution"};
  Proposal out{make_spec(*problem), {}};

  const std::int64_t pixels = problem->batch * problem->out_pixels();
  const std::int64_t outputs = pixels * problem->out_channels;
  const std::int64_t blocks = (outputs + threads - 1) / threads;
  if (blocks > std::numeric_limits<std::int32_t>::max())
    return Refusal{cat(outputs, " outputs need ", blocks, " thread blocks; a launch has at most ",
                       std::numeric_limits<std::int32_t>::max())};
  out.launch = forward_launch(*problem, blocks, threads, 0);
  return out;
}

}  // namespace kiln
