// Products by mma.sync whose operands ldmatrix reads, a fragment at a time.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// How it was fitted: README.md.

// A fragment takes this share of its products' clocks and of those of its reads of shared memory;
// fixed clocks; clocks for 32 copies; where stages hold several steps, clocks for each stage. Fewer
// than `enough_warps` warps do not hide each other's waits.
struct FragmentCosts {
  double products, reads, fragment, copies, stage, lone_warps;
};
constexpr FragmentCosts fragments_f32 = {0.81, 0.245, 176, 5.36, 200, 3.44},
                        fragments_f64 = {1.05, 0.139, 46.5, 0.99, 438, 2.23};
constexpr double enough_warps = 8;
// Factors for reads along rows (f64: from the 2014 paper's L1 in NHWC) and for columns that hit the
// same banks; clocks to split 32 f32 into hi and lo; a scalar copy relative to a plain one.
constexpr double transposed_f32 = 1.28, transposed_16_bits = 0.946, transposed_f64 = 1.45,
                 conflict_share = 4.12, split_clocks = 0.782, gathered_copies = 1.29;
// Clocks: before the first step; for 32 results; for an exchange of sums, for each load of shared
// memory and for 32 sums, for each doubling of the split count.
constexpr double fragment_first_clocks = 3000, fragment_store_clocks = 13.5,
                 fragment_exchange_clocks = 2100, fragment_exchanged_clocks = 7.25;
constexpr double fragment_wait_clocks = 3200;   // where a block waits for memory
constexpr double fragment_start_clocks = 1800;  // of a launch, besides what every launch costs
// Where stages hold several steps: clocks before the first step, and for 32 copies of the first
// stage.
constexpr double staged_first_clocks = 1000, staged_first_copies = 5.36;
// Clocks of waiting for a stage of several steps that is not loaded far ahead; 3xTF32 does not
// wait.
constexpr double landing_clocks_16_bits = 1900, landing_clocks_f32 = 1000, landing_clocks_f64 = 323;
// Bytes a clock that L2 delivers past L1 to each multiprocessor while all of them load.
constexpr double shared_cache_bytes = 26.3;

}  // namespace

double fragment_seconds(const FragmentWork& work, int parts, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double thread_sums = static_cast<double>(shape.thread_m) * shape.thread_n;
  const double warps = sums / (thread_sums * warp);
  constexpr double fragment_bytes = 32, wavefront_bytes = 128;
  const double sum_bytes = static_cast<double>(size_of(compute_type(work.type)));
  // 16-bit elements: twice as many in a fragment, at twice the rate.
  const bool f64 = work.type == KILN_DATA_DOUBLE;
  const double products =
      f64 ? sums * 4 / chip.tensor_f64 : sums * 8 * (work.split ? 3 : 1) / chip.tensor_f32;
  const double conflicts = 1 + conflict_share * (work.column_accesses - 1);
  const double reads = warps * (8 * shape.thread_m + 4 * shape.thread_n * conflicts) *
                       fragment_bytes / wavefront_bytes;
  const double splits = work.split ? warps * (2 * shape.thread_m + shape.thread_n) : 0;
  const FragmentCosts& cost = f64 ? fragments_f64 : fragments_f32;
  double fragment = cost.products * products + cost.reads * reads + split_clocks * splits;
  if (work.transposed)
    fragment *= f64                       ? transposed_f64
                : size_of(work.type) == 2 ? transposed_16_bits
                                          : transposed_f32;
  const double landing = work.split                ? 0
                         : f64                     ? landing_clocks_f64
                         : size_of(work.type) == 2 ? landing_clocks_16_bits
                                                   : landing_clocks_f32;
  const double fragments = std::ceil(work.fragments / parts);
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double busy = std::min<double>(tiles * parts, device.multiprocessors);
  const double cache_bytes =
      std::min(most_cache_bytes, shared_cache_bytes * device.multiprocessors / busy);
  const auto block = [&](double resident) {
    const double hidden = std::min(resident * warps, enough_warps);
    const double waits = (1 + cost.lone_warps / hidden) / (1 + cost.lone_warps / enough_warps);
    const double copies_issued = work.copies * (work.scalar_copies ? gathered_copies : 1) +
                                 work.row_copies * row_copies_share;
    const double first = work.stages == 0 ? fragment_first_clocks
                                          : staged_first_clocks + resident * work.stage_copies *
                                                                      gathered_copies / warp *
                                                                      staged_first_copies;
    const double computed =
        fragments * (resident * fragment * waits + cost.fragment * 2 / work.step_fragments) +
        work.waits / parts * fragment_wait_clocks + work.stages / parts * cost.stage +
        work.landings / parts * landing + resident * copies_issued / parts / warp * cost.copies;
    const double bytes = work.copies * work.copy_bytes + work.row_copies * work.row_copy_bytes;
    const double copied = resident * bytes / parts / cache_bytes;
    double clocks = first + std::max(computed, copied);
    clocks += resident * (work.scattered ? scattered_store_clocks : fragment_store_clocks) *
              work.results / (tiles * warp * parts);
    if (parts > 1)
      clocks +=
          std::ceil(sums * sum_bytes / work.shared_memory) * fragment_exchange_clocks +
          resident * fragment_exchanged_clocks * std::log2(parts) * sums * (sum_bytes / 4) / warp;
    return clocks;
  };
  const int at_least = std::min(shape.min_blocks, blocks_by_memory(work.shared_memory, device));
  const int fitting =
      resident_blocks(work.shared_memory, thread_sums * (work.split || f64 ? 2 : 1), warps, device);
  const int resident = work.all_registers ? at_least : std::max(fitting, at_least);
  const double clocks = rounds_clocks(tiles * parts, parts, resident, device, block);
  return clocks_to_seconds(fragment_start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
