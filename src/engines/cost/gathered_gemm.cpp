// Matrix products in tiles whose operands are gathered element by element.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// How it was fitted: README.md.

// Products, instructions and shared-memory wavefronts of a step overlap in part: each counts with
// this share of its own clocks. Then the instructions for an element that may lie in the padding,
// and the cost of a column's element relative to a row's. f64 kernels issue the copies among the
// products.
struct GatherCosts {
  double products, issue, shared_memory, bounds_instructions = 14.6, column_copies = 1;
};
constexpr GatherCosts gathers_mma = {0.283, 0.599, 0.255},
                      gathers_mma_f64 = {0.543, 0.622, 0.39, 4.51, 2.28},
                      gathers_fma = {0, 0.829, 0.255}, gathers_fma_f64 = {0.6, 0.829, 0.255};

// Instructions of a thread: to copy an element from global to shared memory, index arithmetic
// included; to split an f32 into hi and lo; of the loop itself.
constexpr double copy_instructions = 5.32, split_instructions = 7, loop_instructions = 27.4;
// Wavefronts to read an operand of the tensor cores (fitted).
constexpr double reads_of_operand = 6.8;

// A few warps hide each other's waits only in part: a multiprocessor with w warps needs (1 +
// waiting_warps / w) times as long. On the tensor cores the factor is smaller the longer products
// take.
constexpr double fma_waiting_warps = 2.1, mma_waiting_warps = 14.4, mma_waiting_warps_split = 5,
                 mma_waiting_warps_f64 = 1.93;
// 3xTF32 takes this many times as long where a block is alone on its multiprocessor.
constexpr double lone_block_split = 1.15;

// Clocks: of each step's barrier on the FMA units; before the first step; for 32 results, by the
// way they are stored; for an exchange of sums in a cluster or between slices, for each load of the
// stages' memory and for 32 sums.
constexpr double step_clocks = 210, first_clocks = 400, vector_store_clocks = 15.1,
                 neighbour_store_clocks = 45, exchange_clocks = 1900, exchanged_sums_clocks = 7.21;

// Tiles of uneven work: the share of the longest one that runs after all others, and the loss on
// the FMA units for every 128 more threads.
constexpr double late_share = 0.25, late_share_mma_f64 = 0.4, uneven_threads_loss = 0.07;

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
double turn_clocks(const GemmTile& tile, const GemmWork& work, const Rates& chip) {
  const bool f64 = work.type == KILN_DATA_DOUBLE;
  const double words = f64 ? 2 : 1;  // of an element in shared memory
  const double k = tile.k, warps = tile.threads() / warp, m = tile.thread_m, n = tile.thread_n;
  const double products = static_cast<double>(tile.slices) * tile.m * tile.n * k;
  // Of a thread:
  const GatherCosts& cost =
      tile.mma() ? (f64 ? gathers_mma_f64 : gathers_mma) : (f64 ? gathers_fma_f64 : gathers_fma);
  const double copies = tile.slices * k * (tile.m + cost.column_copies * tile.n) / tile.threads();
  // Pixels, or columns of dw, may lie in the padding. The times of mma.sync were fitted as if rows
  // might too.
  const double columns = tile.mma() ? 1 : 2.0 * tile.n / (tile.m + tile.n);
  const double bounded = work.bounds ? copies * columns : 0;
  double instructions =
      loop_instructions + copies * copy_instructions + bounded * cost.bounds_instructions;
  double units, read;  // words that a warp's reads are charged
  if (tile.mma()) {
    const double passes = tile.split ? 3 : 1, of_k = k / 8;
    const double operands = 2 * m + n;  // m16n8k8 products of a lane
    units = products * passes / (f64 ? chip.tensor_f64 : chip.tensor_f32);
    instructions +=
        of_k * (m / 2 * n / 2 * passes +
                operands * (words / 4 * reads_of_operand + (tile.split ? split_instructions : 0)));
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
  return cost.products * units + cost.issue * instructions * warps / issue_width +
         cost.shared_memory * wavefronts;
}

}  // namespace

double gemm_seconds(const GemmTile& tile, const GemmWork& work, int parts,
                    const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const double one_turn = turn_clocks(tile, work, chip), warps = tile.threads() / warp;
  const double sums = static_cast<double>(tile.m) * tile.n * tile.slices;
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double sum_bytes = static_cast<double>(size_of(compute_type(work.type)));
  const double stage_bytes = GemmStages(tile, work.type, true, true).bytes(tile, work.type);
  const bool shared = parts > 1 || tile.slices > 1;
  const double waiting_warps = !tile.mma()                     ? fma_waiting_warps
                               : work.type == KILN_DATA_DOUBLE ? mma_waiting_warps_f64
                               : tile.split                    ? mma_waiting_warps_split
                                                               : mma_waiting_warps;
  const double store_clocks = work.stores == ResultStores::vectors      ? vector_store_clocks
                              : work.stores == ResultStores::neighbours ? neighbour_store_clocks
                                                                        : scattered_store_clocks;
  // A block that shares its multiprocessor takes longer by the others' work.
  const auto block = [&](double resident, double share = 1) {
    const double turns = std::ceil(work.steps * share / (parts * tile.slices));
    const double busy = resident * one_turn * (1 + waiting_warps / (resident * warps)) *
                        (tile.split && resident == 1 ? lone_block_split : 1);
    double clocks = first_clocks + turns * (busy + (tile.mma() ? 0 : step_clocks));
    clocks += resident * store_clocks * work.results / (tiles * warp * parts);
    if (shared)
      clocks += std::ceil(sums * sum_bytes / stage_bytes) * exchange_clocks +
                resident * exchanged_sums_clocks * sums / warp;
    return clocks;
  };
  const int resident = resident_blocks(tile, work.type, device);
  const double blocks = tiles * parts;
  double clocks;
  if (work.largest > 1) {
    // The longest tiles begin first, and the last ones run with few others beside them. Where all
    // run at once, those beside the longest one have the mean work.
    const bool mma_f64 = tile.mma() && work.type == KILN_DATA_DOUBLE;
    const double late = mma_f64 ? late_share_mma_f64 : late_share;
    const double last = block(1, work.largest);
    const double places = cluster_places(parts, resident, device) * resident;
    const double most =
        std::min<double>(std::ceil(blocks / cluster_places(parts, 1, device)), resident);
    const double even = blocks <= places ? block(most, 1 + (work.largest - 1) / most)
                                         : block(resident) * blocks / places + last * late;
    const double threads_loss = tile.mma() ? 0 : uneven_threads_loss * (tile.threads() / 128.0 - 1);
    clocks = std::max(even, last) * (1 + threads_loss);
  } else {
    clocks = rounds_clocks(blocks, parts, resident, device, block);
  }
  return clocks_to_seconds(clocks, work.bytes, device);
}

}  // namespace kiln
