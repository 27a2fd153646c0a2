#include "engines/reduction/reduction.hpp"

#include <algorithm>
#include <cstddef>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/reduction/layout.hpp"
#include "reduction/reduction_params.h"

namespace kiln {
namespace {

// Adds the constants of both steps.
void add_constants(KernelSpec& spec, const Reduction& reduction, const BlockLayout& layout,
                   const DeviceDescription& device) {
  const ReductionProblem& problem = reduction.problem;
  const Combining& combining = reduction.combining;
  const int lanes = combining.lanes();
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(reduction.compute()));
  add("OPERATION", static_cast<std::int64_t>(problem.op));
  add("BATCH_KEPT", reduction.batch_kept);
  add("SUMS", std::int64_t{reduction.sums});
  add_combining_constants(spec.constants, combining, layout, device.largest_cluster);
  add("ROWS_DIV_KEPT", make_wide_magic(static_cast<std::uint64_t>(combining.kept_vectors())));
  add_combining_strides(spec.constants, combining, "C", 1,
                        reduction.batch_kept ? problem.c_strides[0] : 0);
  add("C_STRIDE_LANE", lanes > 1 ? combining.kept.back().strides[1] : 0);
}

void set_launch(LaunchSpec& launch, const ReductionParams& params, std::int64_t blocks,
                const BlockLayout& layout, std::uint32_t shared_memory) {
  launch.empty = blocks == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  launch.shape.shared_memory = shared_memory;
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches = {{Hole::operand, 0, offsetof(ReductionParams, a)},
                    {Hole::operand, 1, offsetof(ReductionParams, c)},
                    {Hole::alpha, 0, offsetof(ReductionParams, alpha)},
                    {Hole::beta, 0, offsetof(ReductionParams, beta)}};
  if (params.parts > 0)
    launch.patches.push_back({Hole::workspace, 0, offsetof(ReductionParams, partials)});
}

ReductionParams params_of(const Reduction& reduction, const BlockLayout& layout, int parts,
                          bool partial) {
  const ReductionProblem& problem = reduction.problem;
  const std::int64_t terms = reduction.terms(problem.dims[0]);
  const std::int64_t sharing = std::int64_t{parts} * layout.ty;  // threads that share a result
  ReductionParams params{};
  params.images = problem.dims[0];
  params.share = 1.0 / static_cast<double>(std::max<std::int64_t>(problem.reduced(), 1));
  params.steps = terms / sharing;
  params.rest = static_cast<unsigned>(terms % sharing);
  params.parts = partial ? static_cast<unsigned>(parts) : 0;
  return params;
}

// The kernel that reads the elements. `parts` blocks share a result: as a cluster or, `partial`, by
// leaving their sums in the workspace.
Step first_step(const Reduction& reduction, const ReductionLayout& layout, int parts, bool partial,
                const DeviceDescription& device) {
  const int lanes = reduction.combining.lanes();
  Step step;
  KernelSpec& spec = step.kernel;
  spec.engine = "reduction";
  spec.file = "reduction/reduction.cu";
  spec.entry = "reduction";
  spec.tile = cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", layout.unroll, " x ",
                  reduction.combining.vector, " elements a turn", partial ? ", two steps" : "");
  const std::uint32_t totals = static_cast<std::uint32_t>(layout.results() * lanes) *
                               static_cast<std::uint32_t>(size_of(reduction.compute()));
  const auto in_vectors = [](std::uint32_t bytes) { return (bytes + 15) / 16 * 16; };
  spec.shared_memory = layout.combine_bytes(lanes, reduction.compute()) + in_vectors(totals) +
                       in_vectors(static_cast<std::uint32_t>(device.largest_cluster) * totals);
  // One kernel serves all batch sizes, and some of them need clusters.
  spec.clustered = !partial && device.largest_cluster > 1;
  add_constants(spec, reduction, layout, device);
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("PARTIAL", partial);
  add("FOLD", std::int64_t{reduction.fold});
  add("UNROLL", std::int64_t{layout.unroll});
  add("LARGEST_CLUSTER", std::int64_t{device.largest_cluster});
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});
  add("MIN_BLOCKS", std::int64_t{1024 / layout.threads()});
  add_combining_strides(spec.constants, reduction.combining, "A", 0,
                        reduction.problem.a_strides[0]);
  set_launch(step.launch, params_of(reduction, layout, parts, partial),
             blocks_of(reduction, layout) * parts, layout, spec.shared_memory);
  if (!partial) step.launch.shape.cluster = static_cast<std::uint32_t>(parts);
  return step;
}

// The kernel that adds up the sums that `parts` blocks of the first step left for each result.
Step second_step(const Reduction& reduction, const BlockLayout& first, int parts,
                 const DeviceDescription& device) {
  BlockLayout layout;  // independent of the batch size: 128 threads for each result
  constexpr int threads = 256;
  layout.ty = 128;
  layout.groups = threads / layout.ty;
  Step step;
  KernelSpec& spec = step.kernel;
  spec.engine = "reduction";
  spec.file = "reduction/finish.cu";
  spec.entry = "finish";
  spec.tile = cat(layout.ty, " threads a result");
  spec.shared_memory = layout.combine_bytes(reduction.combining.lanes(), reduction.compute());
  add_constants(spec, reduction, layout, device);
  set_launch(step.launch, params_of(reduction, first, parts, true), blocks_of(reduction, layout),
             layout, spec.shared_memory);
  return step;
}

// Estimated time with `parts` blocks for each result. Three things bound the rate of reading: loads
// in flight (one turn of every thread per memory latency), the rate at which a multiprocessor reads
// from L2, which is lower for short lines, and memory bandwidth.
double seconds_of(const Reduction& reduction, const ReductionLayout& layout, std::int64_t parts,
                  const DeviceDescription& device) {
  // Measured on an H200. Seconds of an access of memory; for lines of 32, 64 and 128 bytes, the
  // bytes that a multiprocessor reads in a clock, and the share of memory's rate that is reached.
  constexpr double wait_seconds = 0.55e-6;
  constexpr double bytes_a_clock[] = {14.1414, 19.1919, 40.404}, memory_share[] = {0.67, 0.85, 1};
  const std::int64_t blocks = blocks_of(reduction, layout) * parts;
  if (blocks == 0) return memory_bound_seconds(0, device);
  const auto places = static_cast<double>(places_of(layout, device));
  const double busy = std::min(static_cast<double>(blocks), places);
  const double under_way =
      busy * static_cast<double>(layout.bytes_a_turn(reduction)) / wait_seconds;
  const std::int64_t line = layout.tx * reduction.vector_bytes();
  const int kind = reduction.combining.inner_combined || line >= 128 ? 2 : line >= 64 ? 1 : 0;
  const double taken = std::min(busy, static_cast<double>(device.multiprocessors)) *
                       bytes_a_clock[kind] * clock_rate(device);
  const double bytes = work_of(reduction.problem, false).bytes;
  return memory_bound_seconds(0, device) +
         bytes / std::min({under_way, taken, rates_of(device).memory * memory_share[kind]});
}

enum Kernel { one_step, two_steps, one_step_wide };

Candidate in_one_step(const Reduction& reduction, const ReductionLayout& layout, Kernel kernel,
                      const DeviceDescription& device) {
  const int parts = cluster_parts(reduction, layout, device);
  Candidate candidate;
  candidate.kernel = kernel;
  candidate.seconds = seconds_of(reduction, layout, parts, device);
  candidate.made = Proposal{first_step(reduction, layout, parts, false, device)};
  return candidate;
}

// The candidate with a second step; its proposal is not made if a second step has no benefit.
Candidate in_two_steps(const Reduction& reduction, const DeviceDescription& device) {
  constexpr double second_step_seconds = 3e-6;  // on an H200
  const Reduction lines = reduction.in_long_lines();
  const ReductionLayout layout = partial_layout(lines);
  const int parts = partial_parts(lines, layout, device);
  const std::int64_t results = lines.results(reduction.problem.dims[0]);
  Candidate candidate;
  candidate.kernel = two_steps;
  if (parts == 1) return candidate;
  candidate.seconds = seconds_of(lines, layout, parts, device) + second_step_seconds;
  candidate.workspace =
      static_cast<std::size_t>(results * reduction.combining.lanes() * reduction.sums * parts) *
      size_of(reduction.compute());
  candidate.made = Proposal{{first_step(lines, layout, parts, true, device),
                             second_step(reduction, layout, parts * lines.fold, device)},
                            candidate.workspace};
  return candidate;
}

}  // namespace

bool ReductionEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<ReductionProblem>(problem);
}

std::variant<std::vector<Candidate>, Refusal> ReductionEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const Reduction reduction(std::get<ReductionProblem>(any));
  const ReductionLayout layout = clustered_layout(reduction, device, false);
  const std::int64_t blocks =
      blocks_of(reduction, layout) * cluster_parts(reduction, layout, device);
  if (blocks > limit32)
    return Refusal{cat(reduction.results(reduction.problem.dims[0]), " results need ", blocks,
                       " thread blocks; a launch has at most ", limit32)};
  std::vector<Candidate> candidates{in_one_step(reduction, layout, one_step, device)};
  if (const ReductionLayout wide = clustered_layout(reduction, device, true); wide.tx != layout.tx)
    candidates.push_back(in_one_step(reduction, wide, one_step_wide, device));
  if (Candidate two = in_two_steps(reduction, device); two.made)
    candidates.push_back(std::move(two));
  return candidates;
}

Proposal ReductionEngine::make(const Problem&, const DeviceDescription&,
                               Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
