#include "engines/conv/direct/direct.hpp"

#include <algorithm>

#include "conv/geometry/gather_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;

// Outputs of one image, counting every phase as large as the largest. Kernels count them, and a
// block's worth of the next image's.
std::int64_t image_outputs(const Gather& gather) {
  const Spatial most = gather.largest_pixels();
  return gather.rows * gather.groups * most[0] * most[1] * most[2];
}

struct Launch {
  std::int64_t outputs, phase_blocks, blocks;
};
Launch launch_of(const ConvolutionProblem& problem, const Gather& gather) {
  const std::int64_t outputs = problem.batch * image_outputs(gather);
  const std::int64_t phase_blocks = (outputs + threads - 1) / threads;
  return {outputs, phase_blocks, phase_blocks * static_cast<std::int64_t>(gather.phases.size())};
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather) {
  KernelSpec spec;
  spec.engine = "direct";
  spec.file = "conv/direct/direct.cu";
  spec.entry = "direct_gather";
  spec.tile = "1 output a thread, 256 threads";
  spec.alignment = size_of(problem.type());
  spec.constants = gather_constants(problem, gather);

  const std::int64_t outputs = image_outputs(gather), channels = gather.rows * gather.groups;
  const bool wide = outputs + threads > limit32;
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

bool DirectEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<std::vector<Candidate>, Refusal> DirectEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Launch launch = launch_of(problem, gather);
  if (launch.blocks > limit32)
    return Refusal{cat(launch.outputs, " outputs need ", launch.blocks,
                       " thread blocks; a launch has at most ", limit32)};
  DirectWork work;
  work.threads = static_cast<double>(launch.blocks * threads);
  work.products = problem.flops() / 2 / std::max(static_cast<double>(launch.outputs), 1.0);
  work.bytes = work_of(problem, false).bytes;
  return std::vector<Candidate>{{0, 1, direct_seconds(work, device), {}}};
}

Proposal DirectEngine::make(const Problem& any, const DeviceDescription&, Candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Launch launch = launch_of(problem, gather);
  return Proposal{{make_spec(problem, gather),
                   gather_launch(problem, launch.phase_blocks, launch.blocks, threads, 0)}};
}

}  // namespace kiln
