// Estimates of tiled matrix products whose operands are gathered element by element.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
namespace {

int resident_blocks(const GemmTile& tile, DataType type, const DeviceDescription& device) {
  constexpr std::int64_t reserved = 1024;  // bytes a block
  const bool packs =
      device.kind == KILN_DEVICE_HOST || device.compute_capability >= tile.packs_from;
  const std::int64_t bytes = GemmStages(tile, type, true, true).bytes(tile, type) + reserved;
  const std::int64_t fit = device.shared_memory_per_multiprocessor / bytes;
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, packs ? tile.min_blocks : 1));
}

// Clocks of a multiprocessor for one turn of a block (a step of each of its slices), without its
// warps' waits.
double turn_clocks(const GemmTile& tile, const GemmWork& work, const Rates& chip,
                   const GatheredGemmConstants& fitted) {
  const bool f64 = work.type == KILN_DATA_DOUBLE;
  const double words = f64 ? 2 : 1;  // of an element in shared memory
  const double k = tile.k, warps = tile.threads() / warp, m = tile.thread_m, n = tile.thread_n;
  const double products = static_cast<double>(tile.slices) * tile.m * tile.n * k;
  // Copies and instructions below are those of one thread.
  const GatheredGemmConstants::Gather& cost =
      tile.mma() ? (f64 ? fitted.mma_f64 : fitted.mma) : (f64 ? fitted.fma_f64 : fitted.fma);
  const double copies =
      tile.slices * k * (tile.m + cost.column_copies_share * tile.n) / tile.threads();
  // Pixels, or columns of dw, may lie in the padding. The times of mma.sync were fitted as if rows
  // might too.
  const double columns = tile.mma() ? 1 : 2.0 * tile.n / (tile.m + tile.n);
  const double bounded = work.bounds ? copies * columns : 0;
  double instructions = fitted.loop_instructions + copies * fitted.copy_instructions +
                        bounded * cost.bounds_instructions;
  double units, read;  // clocks of the arithmetic units; words that a thread's reads count as
  if (tile.mma()) {
    const double passes = tile.split ? 3 : 1, of_k = k / 8;
    const double operands = 2 * m + n;  // m16n8k8 products of a lane
    units = products * passes / (f64 ? chip.tensor_f64 : chip.tensor_f32);
    instructions +=
        of_k * (m / 2 * n / 2 * passes + operands * (words / 4 * fitted.operand_read_wavefronts +
                                                     (tile.split ? fitted.split_instructions : 0)));
    if (tile.promote > 0) instructions += 2 * m * n / tile.promote;
    read = of_k * operands * words;
  } else {
    // f32 FMAs are counted by their issue slots.
    units = f64 ? products / chip.f64 : 0;
    const double slots = f64 ? 0.5 : issue_width * warp / chip.f32;
    instructions += k * (m * n + (m + n) * words / 4) * slots;
    read = k * (m + n) * words / 4;  // lanes share most of it
  }
  const double wavefronts = warps * (copies * words + read) * warp / wavefront_words;
  return cost.products_share * units + cost.issue_share * instructions * warps / issue_width +
         cost.shared_memory_share * wavefronts;
}

}  // namespace

double gemm_seconds(const GemmTile& tile, const GemmWork& work, int parts,
                    const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const GatheredGemmConstants& fitted = fitted_of(device).gathered_gemm;
  const double one_turn = turn_clocks(tile, work, chip, fitted), warps = tile.threads() / warp;
  const double sums = static_cast<double>(tile.m) * tile.n * tile.slices;
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double sum_bytes = static_cast<double>(size_of(compute_type(work.type)));
  const double stage_bytes = GemmStages(tile, work.type, true, true).bytes(tile, work.type);
  const bool shared = parts > 1 || tile.slices > 1;
  const double waiting_warps = !tile.mma()                     ? fitted.fma_waiting_warps
                               : work.type == KILN_DATA_DOUBLE ? fitted.mma_f64_waiting_warps
                               : tile.split                    ? fitted.mma_split_waiting_warps
                                                               : fitted.mma_waiting_warps;
  const double store_clocks = work.stores == ResultStores::vectors ? fitted.vector_store_clocks
                              : work.stores == ResultStores::neighbours
                                  ? fitted.neighbour_store_clocks
                                  : fitted_of(device).shared.scattered_store_clocks;
  // The clocks of a block with `resident` blocks on its multiprocessor, which share its units.
  // share: the block's work relative to the mean.
  const auto block = [&](double resident, double share = 1) {
    const double turns = std::ceil(work.steps * share / (parts * tile.slices));
    const double busy = resident * one_turn * (1 + waiting_warps / (resident * warps)) *
                        (tile.split && resident == 1 ? fitted.lone_block_split_share : 1);
    double clocks = fitted.first_clocks + turns * (busy + (tile.mma() ? 0 : fitted.step_clocks));
    clocks += resident * store_clocks * work.results / (tiles * warp * parts);
    if (shared)
      clocks += std::ceil(sums * sum_bytes / stage_bytes) * fitted.exchange_clocks +
                resident * fitted.exchanged_sums_clocks * sums / warp;
    return clocks;
  };
  const int resident = resident_blocks(tile, work.type, device);
  const double blocks = tiles * parts;
  double clocks;
  if (work.largest > 1) {
    // The longest tiles begin first, and the last tiles run with few others beside them. If all
    // blocks run at once, the blocks beside the longest one have the mean work.
    const bool mma_f64 = tile.mma() && work.type == KILN_DATA_DOUBLE;
    const double late = mma_f64 ? fitted.mma_f64_late_share : fitted.late_share;
    const double last = block(1, work.largest);
    const double places = cluster_places(parts, resident, device) * resident;
    const double most =
        std::min<double>(std::ceil(blocks / cluster_places(parts, 1, device)), resident);
    const double even = blocks <= places ? block(most, 1 + (work.largest - 1) / most)
                                         : block(resident) * blocks / places + last * late;
    const double threads_loss =
        tile.mma() ? 0 : fitted.uneven_threads_share * (tile.threads() / 128.0 - 1);
    clocks = std::max(even, last) * (1 + threads_loss);
  } else {
    clocks = rounds_clocks(blocks, parts, resident, device, block);
  }
  return clocks_to_seconds(clocks, work.bytes, device);
}

}  // namespace kiln
