#include "engines/reduction/reduction.hpp"

#include <algorithm>
#include <cstddef>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/choice.hpp"
#include "engines/common/block_layout.hpp"
#include "engines/cost/cost_model.hpp"
#include "reduction/reduction_params.h"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // the batch has no say in the kernel

struct Reduction {
  const ReductionProblem& problem;
  Combining combining;
  bool batch_kept;  // images are results of their own; one image is reduced over, as many are
  int unroll;       // vectors that a thread loads at a time: 64 bytes, if it can
  int sums;         // of squares, for a norm: as they are, scaled up, scaled down

  explicit Reduction(const ReductionProblem& p) : problem(p), batch_kept(p.out_dims[0] != 1) {
    std::array<bool, operand_rank> reduced{};
    for (int i = 1; i < operand_rank; ++i) reduced[i] = p.out_dims[i] == 1 && p.dims[i] != 1;
    const int size = static_cast<int>(size_of(p.type));
    combining = make_combining(p.dims, {p.a_strides, p.c_strides}, reduced, 0, 1, 16 / size);
    unroll = std::min(64 / (combining.vector * size), 16);
    sums = p.op == KILN_REDUCE_NORM2 && p.type != KILN_DATA_HALF ? 3 : 1;
  }

  DataType compute() const { return compute_type(problem.type); }
  std::int64_t vector_bytes() const {
    return combining.vector * static_cast<std::int64_t>(size_of(problem.type));
  }
  // With a batch of `images`: vectors of results, and vectors that one of them is made of.
  std::int64_t results(std::int64_t images) const {
    return combining.kept_vectors() * (batch_kept ? images : 1);
  }
  std::int64_t terms(std::int64_t images) const {
    return combining.combined_vectors() * (batch_kept ? 1 : images);
  }
};

BlockLayout choose_layout(const Reduction& reduction, const DeviceDescription& device) {
  const std::int64_t results = reduction.results(usual_images);
  const std::int64_t terms = reduction.terms(usual_images);
  const int enough_ty = power_at_least(ceil_div(terms, reduction.unroll));
  BlockLayout layout;
  if (reduction.combining.inner_combined) {
    layout.ty = std::clamp(enough_ty, std::min(power_at_most(terms), 8), 256);
    layout.groups = 256 / layout.ty;
    return layout;
  }
  // Threads along what is kept: no narrower than the 32 bytes that memory comes in, few of them
  // idle, and narrow enough that the largest clusters together have a block for two of three
  // multiprocessors: with fewer bytes a line, the cache would look up lines more often than it can.
  const std::int64_t kept = reduction.combining.kept_vectors();
  const auto clusters = [&](int tx) { return ceil_div(results, tx); };
  const auto idle = [&](int tx) { return ceil_div(kept, tx) * tx - kept; };
  layout.tx = std::min(32, power_at_least(kept));
  while (layout.tx > 1 && layout.tx * reduction.vector_bytes() > 32 &&
         (idle(layout.tx) * 8 > kept ||
          3 * clusters(layout.tx) * device.largest_cluster < 2 * device.multiprocessors))
    layout.tx /= 2;
  // Few blocks take more threads, so that the loads under way are as many.
  const std::int64_t blocks = clusters(layout.tx) * device.largest_cluster;
  const int threads =
      std::clamp(power_at_least(std::int64_t{512} * device.multiprocessors / blocks), 256, 1024);
  layout.ty = std::min(enough_ty, threads / layout.tx);
  layout.groups = std::max(256 / (layout.tx * layout.ty), 1);
  return layout;
}

// Into how many parts a cluster of blocks shares a block's work: as many as keep the device busy,
// but no more blocks than run at the same time.
int choose_parts(const Reduction& reduction, const BlockLayout& layout, std::int64_t blocks,
                 const DeviceDescription& device) {
  const std::int64_t places = std::int64_t{1024} / layout.threads() * device.multiprocessors;
  const std::int64_t steps = reduction.terms(reduction.problem.dims[0]) / layout.ty;
  int parts = 1;
  while (parts * 2 <= device.largest_cluster && blocks * parts * 2 <= places && steps >= parts * 2)
    parts *= 2;
  return parts;
}

// Vectors of results need so many blocks, before several share one.
std::int64_t blocks_of(const Reduction& reduction, const BlockLayout& layout) {
  return ceil_div(reduction.results(reduction.problem.dims[0]), layout.results());
}

// What both steps are written for.
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
  const std::int64_t sharing = std::int64_t{parts} * layout.ty;  // threads of a result
  ReductionParams params{};
  params.images = problem.dims[0];
  params.share = 1.0 / static_cast<double>(std::max<std::int64_t>(problem.reduced(), 1));
  params.steps = terms / sharing;
  params.rest = static_cast<unsigned>(terms % sharing);
  params.parts = partial ? static_cast<unsigned>(parts) : 0;
  return params;
}

// The kernel that walks through the elements: in clusters of `parts` blocks or, `partial`, in
// `parts` blocks that leave their sums in the workspace.
Step first_step(const Reduction& reduction, const BlockLayout& layout, int parts, bool partial,
                const DeviceDescription& device) {
  const int lanes = reduction.combining.lanes();
  Step step;
  KernelSpec& spec = step.kernel;
  spec.engine = "reduction";
  spec.file = "reduction/reduction.cu";
  spec.entry = "reduction";
  spec.tile =
      cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", reduction.unroll, " x ",
          reduction.combining.vector, " elements a turn", partial ? ", two steps" : "");
  const std::uint32_t totals = static_cast<std::uint32_t>(layout.results() * lanes) *
                               static_cast<std::uint32_t>(size_of(reduction.compute()));
  const auto in_vectors = [](std::uint32_t bytes) { return (bytes + 15) / 16 * 16; };
  spec.shared_memory = layout.combine_bytes(lanes, reduction.compute()) + in_vectors(totals) +
                       in_vectors(static_cast<std::uint32_t>(device.largest_cluster) * totals);
  spec.clustered = !partial && device.largest_cluster > 1;  // at some batch: one kernel is for all
  add_constants(spec, reduction, layout, device);
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("PARTIAL", partial);
  add("UNROLL", std::int64_t{reduction.unroll});
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

// The kernel that adds up what `parts` blocks of the first step left of each result.
Step second_step(const Reduction& reduction, const BlockLayout& first, int parts,
                 const DeviceDescription& device) {
  BlockLayout layout;  // every result's threads in a warp at least, whatever the batch
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

// Where memory allows it, as many blocks as run at the same time, each thread with a whole turn of
// vectors at least; 1: a second step is of no use.
int parts_in_two_steps(const Reduction& reduction, const BlockLayout& layout, int one_step_parts,
                       const DeviceDescription& device) {
  const std::int64_t images = reduction.problem.dims[0];
  const std::int64_t results = reduction.results(images), blocks = blocks_of(reduction, layout);
  if (blocks == 0) return 1;
  const std::int64_t places = std::int64_t{1024} / layout.threads() * device.multiprocessors;
  const auto bytes = static_cast<std::int64_t>(size_of(reduction.compute())) * reduction.sums *
                     reduction.combining.lanes() * results;
  const std::int64_t parts =
      std::min({places / blocks, static_cast<std::int64_t>(most_workspace) / bytes,
                reduction.terms(images) / (std::int64_t{layout.ty} * reduction.unroll)});
  return parts >= 2 * one_step_parts ? static_cast<int>(parts) : 1;
}

// Of a launch that leaves multiprocessors without a block: those that have one move so much less.
double seconds_of(const Reduction& reduction, const BlockLayout& layout, std::int64_t parts,
                  const DeviceDescription& device) {
  const double places = 1024.0 / layout.threads() * device.multiprocessors;
  const double busy = static_cast<double>(blocks_of(reduction, layout) * parts) / places;
  return memory_bound_seconds(work_of(reduction.problem, false).bytes, device) /
         std::clamp(busy, 1e-3, 1.0);
}

Candidate in_one_step(const Reduction& reduction, const BlockLayout& layout, int parts,
                      const DeviceDescription& device) {
  Candidate candidate;
  candidate.seconds = seconds_of(reduction, layout, parts, device);
  candidate.made = Proposal{first_step(reduction, layout, parts, false, device), {}, 0};
  return candidate;
}

Candidate in_two_steps(const Reduction& reduction, const BlockLayout& layout, int parts,
                       const DeviceDescription& device) {
  constexpr double launch = 3e-6;  // of a second kernel
  const std::int64_t results = reduction.results(reduction.problem.dims[0]);
  Candidate candidate;
  candidate.kernel = 1;
  candidate.seconds = seconds_of(reduction, layout, parts, device) + launch;
  candidate.workspace =
      static_cast<std::size_t>(results * reduction.combining.lanes() * reduction.sums * parts) *
      size_of(reduction.compute());
  candidate.made = Proposal{first_step(reduction, layout, parts, true, device),
                            {second_step(reduction, layout, parts, device)},
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
  const BlockLayout layout = choose_layout(reduction, device);
  const std::int64_t blocks = blocks_of(reduction, layout);
  const int parts = choose_parts(reduction, layout, blocks, device);
  if (blocks * parts > limit32)
    return Refusal{cat(reduction.results(reduction.problem.dims[0]), " results need ",
                       blocks * parts, " thread blocks; a launch has at most ", limit32)};
  std::vector<Candidate> candidates{in_one_step(reduction, layout, parts, device)};
  if (const int more = parts_in_two_steps(reduction, layout, parts, device); more > 1)
    candidates.push_back(in_two_steps(reduction, layout, more, device));
  return candidates;
}

Proposal ReductionEngine::make(const Problem&, const DeviceDescription&,
                               Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
