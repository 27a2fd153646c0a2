#include "engines/reduction/reduction.hpp"

#include <algorithm>
#include <cstddef>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/block_layout.hpp"
#include "reduction/reduction_params.h"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // the batch has no say in the kernel

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

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
  const int enough_ty = power_at_least(divide_up(terms, reduction.unroll));
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
  const auto clusters = [&](int tx) { return divide_up(results, tx); };
  const auto idle = [&](int tx) { return divide_up(kept, tx) * tx - kept; };
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

}  // namespace

bool ReductionEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<ReductionProblem>(problem);
}

std::variant<Proposal, Refusal> ReductionEngine::propose(const Problem& any,
                                                         const DeviceDescription& device) const {
  const auto& problem = std::get<ReductionProblem>(any);
  const Reduction reduction(problem);
  const Combining& combining = reduction.combining;
  const BlockLayout layout = choose_layout(reduction, device);
  const int lanes = combining.lanes();

  KernelSpec spec;
  spec.engine = "reduction";
  spec.file = "reduction/reduction.cu";
  spec.entry = "reduction";
  spec.tile = cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", reduction.unroll,
                  " x ", combining.vector, " elements a turn");
  const std::uint32_t totals = static_cast<std::uint32_t>(layout.results() * lanes) *
                               static_cast<std::uint32_t>(size_of(reduction.compute()));
  const auto round_up = [](std::uint32_t bytes) { return (bytes + 15) / 16 * 16; };
  spec.shared_memory = layout.combine_bytes(lanes, reduction.compute()) + round_up(totals) +
                       round_up(static_cast<std::uint32_t>(device.largest_cluster) * totals);
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(reduction.compute()));
  add("OPERATION", static_cast<std::int64_t>(problem.op));
  add("BATCH_KEPT", reduction.batch_kept);
  add("SUMS", std::int64_t{reduction.sums});
  add("UNROLL", std::int64_t{reduction.unroll});
  add("LARGEST_CLUSTER", std::int64_t{device.largest_cluster});
  spec.clustered = device.largest_cluster > 1;  // at some batch: one kernel is for all
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});
  add("MIN_BLOCKS", std::int64_t{1024 / layout.threads()});
  add_combining_constants(spec.constants, combining, layout, device.largest_cluster);
  add("ROWS_DIV_KEPT", make_wide_magic(static_cast<std::uint64_t>(combining.kept_vectors())));
  add_combining_strides(spec.constants, combining, "A", 0, problem.a_strides[0]);
  add_combining_strides(spec.constants, combining, "C", 1,
                        reduction.batch_kept ? problem.c_strides[0] : 0);
  add("C_STRIDE_LANE", lanes > 1 ? combining.kept.back().strides[1] : 0);

  const std::int64_t blocks = divide_up(reduction.results(problem.dims[0]), layout.results());
  const int parts = choose_parts(reduction, layout, blocks, device);
  if (blocks * parts > limit32)
    return Refusal{cat(reduction.results(problem.dims[0]), " results need ", blocks * parts,
                       " thread blocks; a launch has at most ", limit32)};

  Proposal out{std::move(spec), {}};
  LaunchSpec& launch = out.launch;
  launch.empty = blocks == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks * parts), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  launch.shape.cluster = static_cast<std::uint32_t>(parts);
  launch.shape.shared_memory = out.kernel.shared_memory;
  const std::int64_t terms = reduction.terms(problem.dims[0]);
  const std::int64_t sharing = std::int64_t{parts} * layout.ty;  // threads of a result
  ReductionParams params{};
  params.images = problem.dims[0];
  params.share = 1.0 / static_cast<double>(std::max<std::int64_t>(problem.reduced(), 1));
  params.steps = terms / sharing;
  params.rest = static_cast<unsigned>(terms % sharing);
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches = {{Hole::operand, 0, offsetof(ReductionParams, a)},
                    {Hole::operand, 1, offsetof(ReductionParams, c)},
                    {Hole::alpha, 0, offsetof(ReductionParams, alpha)},
                    {Hole::beta, 0, offsetof(ReductionParams, beta)}};
  return out;
}

}  // namespace kiln
