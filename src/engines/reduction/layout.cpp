#include "engines/reduction/layout.hpp"

#include <algorithm>
#include <numeric>

#include "core/integer.hpp"
#include "engines/cost/chips.hpp"
#include "engines/engine.hpp"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size
constexpr int usual_threads = 256, most_threads = 1024;

// Threads of a result, such that each has about `unroll` vectors to load.
int enough_threads(const Reduction& reduction, int unroll) {
  return power_at_least(ceil_div(reduction.terms(usual_images), unroll));
}

// Lays threads along the combined axes, where vectors lie along them, too.
void lay_along(ReductionLayout& layout, const Reduction& reduction, int threads) {
  const std::int64_t terms = reduction.terms(usual_images);
  layout.ty = std::clamp(enough_threads(reduction, layout.unroll),
                         std::min(power_at_most(terms), 8), threads);
  layout.groups = std::max(usual_threads / layout.ty, 1);
}

// Lays `tx` neighboring threads along the kept axes.
void lay_across(ReductionLayout& layout, const Reduction& reduction, int tx, int threads) {
  layout.tx = tx;
  layout.ty = std::min(enough_threads(reduction, layout.unroll), threads / tx);
  layout.groups = std::max(usual_threads / (layout.tx * layout.ty), 1);
}

// Whether tx threads read more than a sector, 32 bytes.
bool wider_than_a_sector(const Reduction& reduction, int tx) {
  return tx > 1 && tx * reduction.vector_bytes() > 32;
}

// Whether more than an eighth of the threads along the kept axes would be idle.
bool many_idle(const Reduction& reduction, int tx) {
  const std::int64_t kept = reduction.combining.kept_vectors();
  return (ceil_div(kept, tx) * tx - kept) * 8 > kept;
}

// Vectors that a thread loads at a time: 64 bytes, or 128 if the block is alone on its
// multiprocessor. 16-bit types and norms stay at 64, because their sums take more registers; 16-bit
// norms have 32.
int unroll_of(const Reduction& reduction, bool alone) {
  const bool narrow = size_of(reduction.problem.type) == 2, norm = reduction.sums > 1;
  const int bytes = alone && !narrow && !norm ? 128 : narrow && norm ? 32 : 64;
  return static_cast<int>(std::min<std::int64_t>(bytes / reduction.vector_bytes(), 16));
}

}  // namespace

Reduction::Reduction(const ReductionProblem& p) : problem(p), batch_kept(p.out_dims[0] != 1) {
  std::array<bool, operand_rank> reduced{};
  for (int i = 1; i < operand_rank; ++i) reduced[i] = p.out_dims[i] == 1 && p.dims[i] != 1;
  combining = make_combining(p.dims, {p.a_strides, p.c_strides}, reduced, 0, 1,
                             16 / static_cast<int>(size_of(p.type)));
  sums = p.op == KILN_REDUCE_NORM2 && p.type != KILN_DATA_HALF ? 3 : 1;
}

Reduction Reduction::in_long_lines() const {
  Reduction out = *this;
  if (combining.inner_combined || combining.kept.size() != 1 || combining.combined.empty())
    return out;
  Axis& line = out.combining.kept.back();
  Axis& lines = out.combining.combined.back();
  if (line.strides[0] != 1 || lines.strides[0] != line.size) return out;
  constexpr std::int64_t longest = 32;  // vectors in a line
  const std::int64_t vectors = combining.kept_vectors();
  for (int times = 2; times <= 16 && vectors * out.fold % longest != 0; ++times)
    if (lines.size % times == 0 &&
        std::gcd(vectors * times, longest) > std::gcd(vectors * out.fold, longest))
      out.fold = times;
  line.size *= out.fold;
  lines.size /= out.fold;
  for (std::int64_t& stride : lines.strides) stride *= out.fold;
  return out;
}

std::int64_t blocks_of(const Reduction& reduction, const BlockLayout& layout) {
  return ceil_div(reduction.results(reduction.problem.dims[0]), layout.results());
}

std::int64_t places_of(const BlockLayout& layout, const DeviceDescription& device) {
  return std::int64_t{most_threads} / layout.threads() * device.multiprocessors;
}

// With few clusters, blocks get more threads, so that as many loads are in flight.
ReductionLayout clustered_layout(const Reduction& reduction, const DeviceDescription& device,
                                 bool wide) {
  const std::int64_t results = reduction.results(usual_images);
  const auto blocks = [&](int tx) { return ceil_div(results, tx) * device.largest_cluster; };
  const auto at_once = static_cast<std::int64_t>(cluster_places(device.largest_cluster, 1, device));
  ReductionLayout layout;
  if (reduction.combining.inner_combined) {
    const bool alone = blocks(1) <= at_once;
    layout.unroll = unroll_of(reduction, alone);
    lay_along(layout, reduction, alone ? most_threads : usual_threads);
    return layout;
  }
  // Lines should be at least a sector (32 bytes), leave few threads idle, and be so narrow that the
  // largest clusters give at least two of three multiprocessors a block. Narrower lines than that
  // only cost more cache lookups.
  int tx = std::min(32, power_at_least(reduction.combining.kept_vectors()));
  while (wider_than_a_sector(reduction, tx) && many_idle(reduction, tx)) tx /= 2;
  int wider = tx;
  while (wider_than_a_sector(reduction, tx) && 3 * blocks(tx) < 2 * device.multiprocessors)
    wider = tx, tx /= 2;
  if (wide) tx = wider;
  const std::int64_t threads = std::int64_t{512} * device.multiprocessors / blocks(tx);
  const bool alone = blocks(tx) <= at_once && threads > 512;
  layout.unroll = unroll_of(reduction, alone && wide);
  lay_across(layout, reduction, tx,
             std::clamp(power_at_least(threads), usual_threads, alone ? most_threads : 512));
  return layout;
}

// A warp reads lines of 512 bytes, if the kept axes are that long.
ReductionLayout partial_layout(const Reduction& reduction) {
  ReductionLayout layout;
  layout.unroll = unroll_of(reduction, false);
  if (reduction.combining.inner_combined) {
    lay_along(layout, reduction, usual_threads);
    return layout;
  }
  int tx = std::min(32, power_at_least(reduction.combining.kept_vectors()));
  while (wider_than_a_sector(reduction, tx) && many_idle(reduction, tx)) tx /= 2;
  lay_across(layout, reduction, tx, usual_threads);
  return layout;
}

// The largest cluster with which all blocks still run at the same time.
int cluster_parts(const Reduction& reduction, const BlockLayout& layout,
                  const DeviceDescription& device) {
  const std::int64_t blocks = blocks_of(reduction, layout), places = places_of(layout, device);
  const std::int64_t steps = reduction.terms(reduction.problem.dims[0]) / layout.ty;
  int parts = 1;
  while (parts * 2 <= device.largest_cluster && blocks * parts * 2 <= places && steps >= parts * 2)
    parts *= 2;
  return parts;
}

// As many blocks as run at the same time, while each thread has at least `unroll` vectors and the
// sums fit in the workspace.
int partial_parts(const Reduction& reduction, const ReductionLayout& layout,
                  const DeviceDescription& device) {
  const std::int64_t images = reduction.problem.dims[0];
  const std::int64_t results = reduction.results(images), blocks = blocks_of(reduction, layout);
  if (blocks == 0) return 1;
  const auto bytes = static_cast<std::int64_t>(size_of(reduction.compute())) * reduction.sums *
                     reduction.combining.lanes() * results;
  const std::int64_t parts = std::min(
      {places_of(layout, device) / blocks, static_cast<std::int64_t>(most_workspace) / bytes,
       reduction.terms(images) / (std::int64_t{layout.ty} * layout.unroll)});
  return static_cast<int>(std::max<std::int64_t>(parts, 1));
}

}  // namespace kiln
