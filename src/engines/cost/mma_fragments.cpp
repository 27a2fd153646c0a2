// Estimates of products by mma.sync whose operands ldmatrix reads, a fragment at a time.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
double fragment_seconds(const FragmentWork& work, int parts, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const MmaFragmentConstants& fitted = fitted_of(device).mma_fragments;
  const SharedConstants& common = fitted_of(device).shared;
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double thread_sums = static_cast<double>(shape.thread_m) * shape.thread_n;
  const double warps = sums / (thread_sums * warp);
  constexpr double fragment_bytes = 32, wavefront_bytes = 128;
  const double sum_bytes = static_cast<double>(size_of(compute_type(work.type)));
  // A fragment has twice as many 16-bit elements as f32, at twice the rate, so it takes as long.
  const bool f64 = work.type == KILN_DATA_DOUBLE;
  const double products =
      f64 ? sums * 4 / chip.tensor_f64 : sums * 8 * (work.split ? 3 : 1) / chip.tensor_f32;
  const double conflicts = 1 + fitted.conflict_share * (work.column_accesses - 1);
  const double reads = warps * (8 * shape.thread_m + 4 * shape.thread_n * conflicts) *
                       fragment_bytes / wavefront_bytes;
  const double splits = work.split ? warps * (2 * shape.thread_m + shape.thread_n) : 0;
  const MmaFragmentConstants::Costs& cost = f64 ? fitted.f64 : fitted.f32;
  double fragment =
      cost.products_share * products + cost.reads_share * reads + fitted.split_clocks * splits;
  if (work.transposed)
    fragment *= f64                       ? fitted.transposed_f64_share
                : size_of(work.type) == 2 ? fitted.transposed_16_bits_share
                                          : fitted.transposed_f32_share;
  const double landing = work.split                ? 0
                         : f64                     ? fitted.landing_f64_clocks
                         : size_of(work.type) == 2 ? fitted.landing_16_bits_clocks
                                                   : fitted.landing_f32_clocks;
  const double fragments = std::ceil(work.fragments / parts);
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double busy = std::min<double>(tiles * parts, device.multiprocessors);
  const double cache_bytes =
      std::min(most_cache_bytes, fitted.l2_bytes_a_clock * device.multiprocessors / busy);
  const auto block = [&](double resident) {
    const double hidden = std::min(resident * warps, fitted.enough_warps);
    const double waits =
        (1 + cost.lone_warps / hidden) / (1 + cost.lone_warps / fitted.enough_warps);
    const double copies_issued =
        work.copies * (work.scalar_copies ? fitted.gathered_copies_share : 1) +
        work.row_copies * common.row_copies_share;
    const double first = work.stages == 0
                             ? fitted.first_clocks
                             : fitted.staged_first_clocks + resident * work.stage_copies *
                                                                fitted.gathered_copies_share /
                                                                warp * fitted.staged_copies_clocks;
    const double computed =
        fragments * (resident * fragment * waits + cost.fragment_clocks * 2 / work.step_fragments) +
        work.waits / parts * fitted.wait_clocks + work.stages / parts * cost.stage_clocks +
        work.landings / parts * landing +
        resident * copies_issued / parts / warp * cost.copies_clocks;
    const double bytes = work.copies * work.copy_bytes + work.row_copies * work.row_copy_bytes;
    const double copied = resident * bytes / parts / cache_bytes;
    double clocks = first + std::max(computed, copied);
    clocks += resident * (work.scattered ? common.scattered_store_clocks : fitted.store_clocks) *
              work.results / (tiles * warp * parts);
    if (parts > 1)
      clocks += std::ceil(sums * sum_bytes / work.shared_memory) * fitted.exchange_clocks +
                resident * fitted.exchanged_sums_clocks * std::log2(parts) * sums *
                    (sum_bytes / 4) / warp;
    return clocks;
  };
  const int at_least = std::min(shape.min_blocks, blocks_by_memory(work.shared_memory, device));
  const int fitting =
      resident_blocks(work.shared_memory, thread_sums * (work.split || f64 ? 2 : 1), warps, device);
  const int resident = work.all_registers ? at_least : std::max(fitting, at_least);
  const double clocks = rounds_clocks(tiles * parts, parts, resident, device, block);
  return clocks_to_seconds(fitted.start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
