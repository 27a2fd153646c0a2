#include "engines/direct.hpp"

#include <algorithm>
#include <limits>

#include "conv/gather_params.h"
#include "core/text.hpp"
#include "engines/cost_model.hpp"
#include "engines/gather.hpp"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;

// Outputs of one image, every phase as large as the largest; kernels count them, plus a block's
// worth of the next image's.
std::int64_t image_outputs(const Gather& gather) {
  const Spatial most = gather.largest_pixels();
  return gather.rows * gather.groups * most[0] * most[1] * most[2];
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather) {
  KernelSpec spec;
  spec.engine = "direct";
  spec.file = "conv/direct.cu";
  spec.entry = "direct_gather";
  spec.tile = "1 output a thread, 256 threads";
  spec.alignment = size_of(problem.type);
  spec.constants = gather_constants(problem, gather);

  const std::int64_t outputs = image_outputs(gather), channels = gather.rows * gather.groups;
  const bool wide = outputs + threads > std::numeric_limits<std::int32_t>::max();
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(outputs + threads)));
  };
  const Spatial most = gather.largest_pixels();
  add("OUTPUT_ROWS_INNER", gather.out_strides[1] == 1 && channels > 1);
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  add("BLOCK_DIV_OUTPUTS", make_wide_magic(static_cast<std::uint64_t>(outputs)));
  add_divisor("DIV_OUTPUTS", outputs);
  add_divisor("DIV_ALL_ROWS", channels);
  add_divisor("DIV_OPQ", most[0] * most[1] * most[2]);
  add_divisor("DIV_PQ", most[1] * most[2]);
  add_divisor("DIV_Q", most[2]);
  add_divisor("DIV_ROWS", gather.rows);
  return spec;
}

}  // namespace

bool DirectEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass != ConvolutionPass::wgrad;
}

std::variant<Proposal, Refusal> DirectEngine::propose(const Problem& any,
                                                      const DeviceDescription&) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  Proposal out{make_spec(problem, gather), {}};

  const std::int64_t outputs = problem.batch * image_outputs(gather);
  const std::int64_t phase_blocks = (outputs + threads - 1) / threads;
  const std::int64_t blocks = phase_blocks * static_cast<std::int64_t>(gather.phases.size());
  if (blocks > std::numeric_limits<std::int32_t>::max())
    return Refusal{cat(outputs, " outputs need ", blocks, " thread blocks; a launch has at most ",
                       std::numeric_limits<std::int32_t>::max())};
  out.launch = gather_launch(problem, phase_blocks, blocks, threads, 0);
  return out;
}

double DirectEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const auto outputs = static_cast<double>(problem.batch * image_outputs(gather));
  const double all = outputs * static_cast<double>(gather.phases.size());
  const double products = problem.flops() / 2 / std::max(outputs, 1.0);
  return direct_seconds({problem.type, all, products, work_of(problem, false).bytes}, device);
}

}  // namespace kiln
