#include "engines/conv/direct/wgrad_direct.hpp"

#include <cmath>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t threads = 256;

std::int64_t blocks_of(const ConvolutionProblem& problem) {
  return problem.out_channels * problem.group_in() * problem.taps();
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather) {
  KernelSpec spec;
  spec.engine = "wgrad_direct";
  spec.file = "conv/direct/wgrad_direct.cu";
  spec.entry = "wgrad_direct";
  spec.tile = "1 element of dw a block, 256 threads";
  spec.alignment = size_of(problem.type());
  spec.shared_memory =
      threads / 32 * static_cast<std::uint32_t>(size_of(compute_type(problem.type())));
  spec.constants = gather_constants(problem, gather);

  const Gather::Phase& phase = gather.phases.front();
  const bool wide = phase.out_pixels() + threads > limit32;
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  const auto add_pixels = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(phase.out_pixels() + threads)));
  };
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  add_pixels("DIV_OPQ", phase.out_pixels());
  add_pixels("DIV_PQ", phase.pixels[1] * phase.pixels[2]);
  add_pixels("DIV_Q", phase.pixels[2]);
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    add(name, make_magic(static_cast<std::uint32_t>(divisor), limit32));
  };
  add_divisor("DIV_COLUMNS", gather.channels * phase.tap_count());
  add_divisor("DIV_TRS", phase.tap_count());
  add_divisor("DIV_RS", phase.taps[1] * phase.taps[2]);
  add_divisor("DIV_S", phase.taps[2]);
  add_divisor("DIV_ROWS", gather.rows);
  return spec;
}

}  // namespace

bool WgradDirectEngine::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::variant<std::vector<Candidate>, Refusal> WgradDirectEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const std::int64_t blocks = blocks_of(problem);
  if (blocks > limit32)
    return Refusal{
        cat(blocks, " elements of dw need as many thread blocks; a launch has at most ", limit32)};
  const auto pixels = static_cast<double>(problem.batch * problem.out_pixels());
  DirectWork work;
  work.threads = static_cast<double>(blocks) * threads;
  work.products = std::ceil(pixels / threads);
  work.bytes = work_of(problem, false).bytes;
  // In NHWC the lanes of a warp read elements that are sectors apart: eight layers on an H100 and
  // an H200, in f16 and f32, took 8 to 17 times as long as counted.
  constexpr double sectors_apart = 11;
  const bool channels_last = problem.x_strides[1] == 1 && problem.x_strides[4] > 1;
  return std::vector<Candidate>{
      {0, 1, direct_seconds(work, device) * (channels_last ? sectors_apart : 1), {}}};
}

Proposal WgradDirectEngine::make(const Problem& any, const DeviceDescription&, Candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  KernelSpec spec = make_spec(problem, make_gather(problem));
  LaunchSpec launch = wgrad_launch(problem, blocks_of(problem), threads, spec.shared_memory);
  return Proposal{{std::move(spec), std::move(launch)}};
}

}  // namespace kiln
