#include "engines/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "codegen/kernel_spec.hpp"

namespace kiln {
namespace {

// ---- chips --------------------------------------------------------------------------------------

// Of a multiprocessor, multiply-adds a clock: lanes from the CUDA C++ Programming Guide
// ("Arithmetic Instructions"), tensor cores from the vendor's architecture papers, but for those of
// 90, which mma.sync drives no faster than this (tests/bench/NOTES.md: 614 clocks for three
// products of 128x128x8). The gathering engines multiply 16-bit operands as TF32; operands in
// fragments, at twice the rate. Clocks are the boost clocks of the first chip of that capability in
// device/known_chips.cpp, memory its data sheet's; of 90 both as measured on an H200.
struct Rates {
  int capability;
  double gigahertz;
  double f32, f64;                // FMA units
  double tensor_f32, tensor_f64;  // 0: none
  double memory;                  // bytes a second
};
constexpr Rates rates[] = {
    {75, 1.59, 64, 2, 0, 0, 0.32e12},      {80, 1.41, 64, 32, 512, 64, 1.55e12},
    {86, 1.70, 128, 2, 256, 0, 0.60e12},   {89, 2.52, 128, 2, 256, 0, 0.86e12},
    {90, 1.98, 128, 64, 640, 128, 4.2e12}, {100, 1.92, 128, 64, 640, 64, 7.7e12},
    {120, 2.41, 128, 2, 256, 0, 1.79e12},
};
// The host device is taken for a chip that has everything, so that tests meet every engine.
constexpr int host_capability = 90;

const Rates& rates_of(const DeviceDescription& device) {
  const int capability =
      device.kind == KILN_DEVICE_HOST ? host_capability : device.compute_capability;
  const Rates* found = rates;
  for (const Rates& each : rates)
    if (each.capability <= capability) found = &each;
  return *found;
}

// ---- what was fitted to the times in tests/bench/h200 and tests/bench/NOTES.md ------------------

// Of gathered operands. A step takes this share of the clocks that its products, its instructions
// and its wavefronts of shared memory would take one after the other: they overlap in part. Then
// instructions of a thread for an element that may lie in the padding, and a column's element
// against a row's. The products of f64 have the copies among them.
struct GatherCosts {
  double products, issue, shared_memory, bounds_instructions = 14.6, column_copies = 1;
};
constexpr GatherCosts gathers_mma = {0.283, 0.599, 0.255},
                      gathers_mma_f64 = {0.543, 0.622, 0.39, 4.51, 2.28},
                      gathers_fma = {0, 0.829, 0.255}, gathers_fma_f64 = {0.6, 0.829, 0.255};

// Instructions of a thread: to copy an element from global to shared memory, index arithmetic
// included; to split an f32 in two; of the loop itself.
constexpr double copy_instructions = 5.32, split_instructions = 7, loop_instructions = 27.4;
// Tensor cores' operands are read by halves of the 16 bytes that an access takes, and then some.
constexpr double reads_of_operand = 6.8;

// A few warps hide each other's waits only in part: a multiprocessor with `w` of them needs
// (1 + waiting_warps / w) times as long: on the FMA units, and the less on the tensor cores the
// longer their products take.
constexpr double fma_waiting_warps = 2.1, mma_waiting_warps = 14.4, mma_waiting_warps_split = 5,
                 mma_waiting_warps_f64 = 1.93;
// And so many times as long, in three products, where one block is alone with its barriers.
constexpr double lone_block_split = 1.15;

// Clocks: at the barrier of each step on the FMA units; before the first one; for 32 results, by
// how they are stored; to exchange the sums of a cluster or of slices, as many as the stages'
// memory holds, and for 32 of them.
constexpr double step_clocks = 210, first_clocks = 400, vector_store_clocks = 15.1,
                 neighbour_store_clocks = 45, scattered_store_clocks = 68, exchange_clocks = 1900,
                 exchanged_sums_clocks = 7.21;

// Of tiles of uneven work, the share of the longest one that runs behind all others, and what they
// lose on the FMA units for every 128 threads more.
constexpr double late_share = 0.25, late_share_mma_f64 = 0.4, uneven_threads_loss = 0.07;

// Of operands in fragments: a fragment takes this share of its products' clocks and of those in
// which shared memory is read; clocks of its own whatever runs beside, and for 32 copies; where
// stages hold several steps, clocks a stage. Fewer than `enough_warps` do not hide each other's
// waits.
struct FragmentCosts {
  double products, reads, fragment, copies, stage, lone_warps;
};
constexpr FragmentCosts fragments_f32 = {0.81, 0.245, 176, 5.36, 200, 3.44},
                        fragments_f64 = {1.05, 0.139, 46.5, 0.99, 438, 2.23};
constexpr double enough_warps = 8;
// Reads along rows (of f64 by the paper's L1, channels last), or of columns that meet in the same
// banks; clocks to split 32 f32 in two. Then as above: clocks before the first step, for results,
// to exchange sums, each time that their parts are doubled.
constexpr double transposed_f32 = 1.28, transposed_16_bits = 0.946, transposed_f64 = 1.45,
                 conflict_share = 4.12, split_clocks = 0.782, gathered_copies = 1.29;
constexpr double fragment_first_clocks = 3000, fragment_store_clocks = 13.5,
                 fragment_exchange_clocks = 2100, fragment_exchanged_clocks = 7.25;
constexpr double fragment_wait_clocks = 3200;   // where a block waits for memory
constexpr double fragment_start_clocks = 1800;  // of a launch, beside what every launch costs
// Where stages hold several steps: before the first step, and for 32 copies of the first stage.
constexpr double staged_first_clocks = 1000, staged_first_copies = 5.36;
// Until a stage of several steps has landed that is not loaded far ahead; in three products none is
// waited for.
constexpr double landing_clocks_16_bits = 1900, landing_clocks_f32 = 1000, landing_clocks_f64 = 323;
// Of copies by rows, against plain ones; those of which `gathered_copies` says how they weigh have
// their place worked out.
constexpr double row_copies_share = 0.548;
// Bytes a clock that the L2 cache brings to a multiprocessor while it brings as many to all others
// (past L1, and by way of it), and at most.
constexpr double shared_cache_bytes = 26.3, shared_cache_bytes_in_l1 = 19.9, most_cache_bytes = 64;
// Registers of a thread beside its sums, which with shared memory limit how many blocks fit.
constexpr double registers_beside_sums = 88;

// Of products by warpgroups: multiply-adds of f32 a clock of a multiprocessor; clocks a step for
// each of its products' own, for each byte copied, of the filter and of a halo, and whatever it
// does, more if but one warpgroup is there to do it, for then nobody multiplies meanwhile; then as
// above. Clusters run alone on their multiprocessors, but for those of such blocks.
constexpr double warpgroup_rate = 1024, warpgroup_share_of_products = 0.969,
                 filter_byte_clocks = 0.00472, halo_byte_clocks = 0.0421,
                 warpgroup_step_clocks = 100, lone_warpgroup_step_clocks = 140,
                 warpgroup_first_clocks = 6000, warpgroup_store_clocks = 6.63,
                 warpgroup_exchanged_clocks = 13.6, warpgroup_start_clocks = 1700;
// The same where single elements are gathered: clocks of each; of a step, of a group of them,
// before the first one whatever it gathers, and of a thread for each element of that; of a result.
// What other numbers of warps than eight change of the gathering and storing. Of f32 in three
// products, what a step's products are of those of one.
struct Gathering {
  double element, element_warps, step, group, first, first_element, result, result_warps,
      products = 1;
};
constexpr Gathering gathered_16_bits = {0.182, 0.07, 60.9, 684, 3990, 41.1, 22.7, 0.648},
                    gathered_f32 = {0.111, -0.488, 60.9, 684, 3990, 41.1, 22.7, 0.648},
                    gathered_split = {0.288, -0.137, 93.6, 594, 8990, 0, 72.4, 0.727, 2.7};
// An element of a halo against one of the filter, and what comes to that where few pixels lie side
// by side.
constexpr double gathered_halo_share = 0.893, gathered_short_run = 5.67;

// Of products by warpgroups whose left operand is read into registers: clocks of a fragment, for 64
// lines of that and for a line of the right one; of its products, the share that comes to those.
// Few warps with products under way do not hide each other's waits. Then as above.
struct LeftFragment {
  double left, right;
};
constexpr LeftFragment left_split = {68.8, 1.93}, left_whole = {34.6, 1.08};
// The same where ldmatrix reads it, and of a step; a copy of a word against one of 16 bytes.
constexpr LeftFragment left_split_matrices = {64.7, 0.933};
constexpr double left_step_clocks = 134, left_word_copies = 0.433;
// Where a fragment is read by words of columns that meet in the same banks: of each access more.
constexpr double left_conflict_clocks = 20;
// Copies of single words by rows that run beside the products of a filter gradient, by the paper's
// L5 in f32 and tf32.
constexpr double left_row_word_copies = 0.17;
constexpr double left_share_of_products = 0.33, left_lone_warps = 0.769, left_copies_clocks = 21.7,
                 left_gathered_copies = 0.176, left_gathered_pairs = 0.26, left_stage_clocks = 866,
                 left_first_clocks = 3440, left_store_clocks = 15.2, left_exchange_clocks = 1190,
                 left_exchanged_clocks = 7.74, left_start_clocks = 2130;
// Of a warp that moves a register, where nothing runs beside it.
constexpr double move_clocks = 2.3;

constexpr double launch_seconds = 2e-6;  // from one kernel's end to the next one's beginning

// Of a thread that slides along a row: against one multiply-add a clock and lane, by the f32 and
// f64 data gradients of the paper's L1; and where channels lie innermost, by the same in NHWC.
constexpr double sliding_share = 0.75, sliding_waiting_warps = 2.4, sliding_channels_inner = 1.6,
                 sliding_narrow = 1.4, sliding_step_clocks = 320;

// ---- what was not measured ----------------------------------------------------------------------

// Set so that sliding windows are not for problems of a few microseconds: clocks of each block.
constexpr double sliding_first_clocks = 2000;
// Set so that the direct engines are the last resort: clocks from one product of a thread to its
// next, an access of cold memory, and instructions of a product, most of them index arithmetic.
constexpr double direct_wait = 500, direct_instructions = 24, direct_first_clocks = 1000;

// ---- the model ----------------------------------------------------------------------------------

constexpr double issue_width = 4;       // warp instructions a clock
constexpr double wavefront_words = 32;  // of shared memory a clock
constexpr double warp = 32, warps_of_warpgroup = 4;

int resident_blocks(const GemmTile& tile, DataType type, const DeviceDescription& device) {
  constexpr std::int64_t reserved = 1024;  // bytes a block
  const bool packs =
      device.kind == KILN_DEVICE_HOST || device.compute_capability >= tile.packs_from;
  const std::int64_t bytes = GemmStages(tile, type, true, true).bytes(tile, type) + reserved;
  const std::int64_t fit = device.shared_memory_per_multiprocessor / bytes;
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, packs ? tile.min_blocks : 1));
}

// In which a multiprocessor does one turn of a block, a step of each of its slices, all its warps'
// waits apart.
double turn_clocks(const GemmTile& tile, const GemmWork& work, const Rates& chip) {
  const bool f64 = work.type == KILN_DATA_DOUBLE;
  const double words = f64 ? 2 : 1;  // of an element in shared memory
  const double k = tile.k, warps = tile.threads() / warp, m = tile.thread_m, n = tile.thread_n;
  const double products = static_cast<double>(tile.slices) * tile.m * tile.n * k;
  // Of a thread:
  const GatherCosts& cost =
      tile.mma() ? (f64 ? gathers_mma_f64 : gathers_mma) : (f64 ? gathers_fma_f64 : gathers_fma);
  const double copies = tile.slices * k * (tile.m + cost.column_copies * tile.n) / tile.threads();
  // Pixels, or columns of dw, may lie in the padding. Times of mma.sync were fitted as if rows
  // might.
  const double columns = tile.mma() ? 1 : 2.0 * tile.n / (tile.m + tile.n);
  const double bounded = work.bounds ? copies * columns : 0;
  double instructions =
      loop_instructions + copies * copy_instructions + bounded * cost.bounds_instructions;
  double units, read;  // words that its warp's reads are charged with
  if (tile.mma()) {
    const double passes = tile.split ? 3 : 1, of_k = k / 8;
    const double operands = 2 * m + n;  // of a lane, of 16x8x8 products
    units = products * passes / (f64 ? chip.tensor_f64 : chip.tensor_f32);
    instructions +=
        of_k * (m / 2 * n / 2 * passes +
                operands * (words / 4 * reads_of_operand + (tile.split ? split_instructions : 0)));
    if (tile.promote > 0) instructions += 2 * m * n / tile.promote;
    read = of_k * operands * words;
  } else {
    // The issue slots of f32 products are their units' clocks.
    units = f64 ? products / chip.f64 : 0;
    const double slots = f64 ? 0.5 : issue_width * warp / chip.f32;
    instructions += k * (m * n + (m + n) * words / 4) * slots;
    read = k * (m + n) * words / 4;  // lanes share most of it
  }
  const double wavefronts = warps * (copies * words + read) * warp / wavefront_words;
  return cost.products * units + cost.issue * instructions * warps / issue_width +
         cost.shared_memory * wavefronts;
}

int blocks_by_memory(double bytes, const DeviceDescription& device) {
  constexpr double reserved = 1024;  // of a block, by the driver
  return static_cast<int>(
      std::clamp(device.shared_memory_per_multiprocessor / (bytes + reserved), 1.0, 32.0));
}
// Blocks of so many bytes of shared memory and warps, whose threads have so many sums in registers.
int resident_blocks(double shared_memory, double thread_sums, double warps,
                    const DeviceDescription& device) {
  const double registers = std::min(255.0, thread_sums + registers_beside_sums);
  const double by_registers =
      device.registers_per_multiprocessor / (std::ceil(registers / 8) * 8 * warps * warp);
  return std::min(blocks_by_memory(shared_memory, device),
                  static_cast<int>(std::max(by_registers, 1.0)));
}

// How many clusters of so many blocks run at once on an H100 or H200 of 132 multiprocessors, by the
// driver (cuOccupancyMaxActiveClusters): a cluster runs within one processing cluster, and those
// are of different sizes. Of one block a multiprocessor, and of two, three and four.
constexpr int resident_rows = 4;
struct ClustersAtOnce {
  int size, clusters[resident_rows];
};
constexpr ClustersAtOnce clusters_at_once[] = {
    {2, {66, 132, 198, 264}}, {3, {39, 79, 124, 163}}, {4, {30, 62, 92, 124}},
    {5, {22, 47, 69, 94}},    {6, {17, 39, 62, 79}},   {8, {15, 30, 45, 62}},
    {16, {7, 14, 21, 28}},
};
constexpr int others_processing_cluster = 16;

int most_clusters(int size, int resident, const DeviceDescription& device) {
  if (device.multiprocessors == 132)
    for (const ClustersAtOnce& each : clusters_at_once)
      if (each.size == size) {
        const int row = std::min(resident, resident_rows);
        return each.clusters[row - 1] * resident / row;
      }
  return others_processing_cluster * resident / size * device.multiprocessors /
         others_processing_cluster;
}

// Places for blocks in clusters of `parts`, of which `resident` fit on a multiprocessor, as if they
// were multiprocessors.
double cluster_places(int parts, int resident, const DeviceDescription& device) {
  if (parts == 1) return device.multiprocessors;
  return static_cast<double>(std::max(most_clusters(parts, resident, device), 1) * parts) /
         resident;
}

// Clocks of `blocks` blocks over the chip in clusters of `parts`, `resident` at once on a
// multiprocessor, of which each takes block(r) beside r - 1 others. The fullest multiprocessor sets
// the time. Blocks of the first round are dealt one to each; those of the last go where blocks end,
// which may be evenly, or all at once where all ended together: both have been seen, so the mean of
// both is taken.
template <class Block>
double rounds_clocks(double blocks, int parts, int resident, const DeviceDescription& device,
                     const Block& block) {
  const double places = cluster_places(parts, resident, device);
  const double alone = std::max(1.0, std::ceil(blocks / cluster_places(parts, 1, device)));
  if (blocks <= places * resident) return block(std::min<double>(alone, resident));
  const double most = std::max<double>(std::ceil(blocks / places), resident + 1);
  const double whole = std::floor(most / resident), rest = most - whole * resident;
  const double even = whole * block(resident) + (rest > 0 ? block(rest) : 0);
  return (even + std::ceil(blocks / (places * resident)) * block(resident)) / 2;
}

double seconds_of(double clocks, double bytes, const Rates& chip) {
  return launch_seconds + std::max(clocks / (chip.gigahertz * 1e9), bytes / chip.memory);
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
  // Beside others a block takes as much longer as they have to do.
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
    // The longest work begins first; what ends last does so with few others beside it. Where all
    // run at once, the longest one's others are of the mean.
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
  return seconds_of(clocks, work.bytes, chip);
}

double fragment_seconds(const FragmentWork& work, int parts, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double thread_sums = static_cast<double>(shape.thread_m) * shape.thread_n;
  const double warps = sums / (thread_sums * warp);
  constexpr double fragment_bytes = 32, wavefront_bytes = 128;
  const double sum_bytes = static_cast<double>(size_of(compute_type(work.type)));
  // Of 16 bits twice as many in a fragment, at twice the rate.
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
    const double copies_issued =
        work.copies * (work.one_by_one ? gathered_copies : 1) + work.row_copies * row_copies_share;
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
  return seconds_of(fragment_start_clocks + clocks, work.bytes, chip);
}

double warpgroup_fragment_seconds(const FragmentWork& work, int parts,
                                  const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double warps = shape.threads() / warp;
  // Products by 64 lines of the left operand, and lines of the right one, which of f32 in three
  // products are taken apart there.
  const double left = (shape.columns_left ? shape.n : shape.m) / 64.0;
  const double right = shape.columns_left ? shape.m : shape.n;
  const double products = sums * 8 * (work.split ? 3 : 1) / warpgroup_rate;
  const LeftFragment& cost = work.left_matrix_steps > 0 ? left_split_matrices
                             : work.split               ? left_split
                                                        : left_whole;
  const double fragment = left_share_of_products * products +
                          (cost.left + left_conflict_clocks * (work.column_accesses - 1)) * left +
                          (work.right_stays ? 0 : cost.right * right);
  const double fragments = std::ceil(work.fragments / parts);
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const auto block = [&](double resident) {
    const double under_way = resident * shape.slices * left * warps_of_warpgroup;
    const double gathered = work.copy_bytes == 2 ? left_gathered_pairs : left_gathered_copies;
    const double copies =
        work.copies * (work.one_by_one ? gathered : 1) +
        work.row_copies * (work.row_words_beside ? left_row_word_copies : row_copies_share) +
        work.word_copies * left_word_copies;
    double clocks = left_first_clocks +
                    fragments * resident * fragment * (1 + left_lone_warps / under_way) +
                    resident * copies / parts / warp * left_copies_clocks +
                    work.stages / parts * left_stage_clocks +
                    resident * work.left_matrix_steps / parts * left_step_clocks +
                    resident * work.moves * warps * move_clocks / issue_width;
    clocks += resident * (work.scattered ? scattered_store_clocks : left_store_clocks) *
              work.results / (tiles * warp * parts);
    if (parts * shape.slices > 1)
      clocks += std::ceil(sums * shape.slices * 4 / work.shared_memory) * left_exchange_clocks +
                resident * left_exchanged_clocks * std::log2(parts * shape.slices) * sums / warp;
    return clocks;
  };
  const double thread_sums = sums / shape.slice_threads() * (work.split ? 2 : 1);
  const int resident =
      std::max(std::min(shape.min_blocks, blocks_by_memory(work.shared_memory, device)),
               resident_blocks(work.shared_memory, thread_sums, warps, device));
  const double clocks = rounds_clocks(tiles * parts, parts, resident, device, block);
  return seconds_of(left_start_clocks + clocks, work.bytes, chip);
}

// Clocks of a warpgroups' tile beside its products.
struct BesideProducts {
  double copies, steps, first;
  double result;  // of a warp's
};

BesideProducts copying_clocks(const WarpgroupWork& work, int parts) {
  return {work.halo_bytes * halo_byte_clocks + work.filter_bytes * filter_byte_clocks,
          std::ceil(work.steps / parts) * warpgroup_step_clocks, warpgroup_first_clocks,
          warpgroup_store_clocks};
}

const Gathering& gathering_of(const WarpgroupWork& work) {
  return work.split                     ? gathered_split
         : work.type == KILN_DATA_FLOAT ? gathered_f32
                                        : gathered_16_bits;
}

// What the first group gathers is waited for.
BesideProducts gathering_clocks(const WarpgroupWork& work, int parts) {
  const Gathering& cost = gathering_of(work);
  const auto element = static_cast<double>(size_of(work.type));
  const auto of_warps = [&](double share) {
    constexpr double warps = 8;
    return 1 + share * (warps / (work.threads / warp) - 1);
  };
  const double halo = gathered_halo_share * (1 + gathered_short_run / work.halo_run);
  const double gathered = (work.filter_bytes + work.halo_bytes * halo) / element;
  const double first = (work.filter_bytes / work.groups + work.halo_bytes / work.halos) / element;
  return {gathered * cost.element * of_warps(cost.element_warps),
          std::ceil(work.steps / parts) * cost.step + work.groups / parts * cost.group,
          cost.first + first / work.threads * cost.first_element,
          cost.result * of_warps(cost.result_warps)};
}

double warpgroup_seconds(const WarpgroupWork& work, int parts, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const double sums = static_cast<double>(work.m) * work.n;
  // 32 bytes of the reduction: 8 of f32, of 16 bits twice as many at twice the rate.
  const double step = work.step_fragments * sums * 8 / warpgroup_rate *
                      warpgroup_share_of_products * gathering_of(work).products;
  const double products = std::ceil(work.steps / parts) * step;
  const bool gathers = work.groups > 0;
  const BesideProducts beside =
      gathers ? gathering_clocks(work, parts) : copying_clocks(work, parts);
  const double bytes = gathers ? 0 : (work.halo_bytes + work.filter_bytes) / parts;
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double blocks = tiles * parts;
  const double busy = std::min<double>(blocks, device.multiprocessors);
  const double cache_bytes =
      std::min(most_cache_bytes, shared_cache_bytes_in_l1 * device.multiprocessors / busy);
  const auto block = [&](double resident) {
    const bool lone = !gathers && resident * work.threads / warp <= warps_of_warpgroup;
    const double waits = lone ? std::ceil(work.steps / parts) * lone_warpgroup_step_clocks : 0;
    const double computed = resident * (products + beside.copies / parts) + beside.steps + waits;
    double clocks = beside.first + std::max(computed, resident * bytes / cache_bytes);
    clocks += resident * beside.result * work.results / (blocks * warp);
    if (parts > 1) clocks += resident * warpgroup_exchanged_clocks * std::log2(parts) * sums / warp;
    return clocks;
  };
  const double warps = work.threads / warp;
  const double thread_sums = sums / work.threads * (work.split ? 2 : 1);
  const bool alone = parts > 1 && (gathers || warps > warps_of_warpgroup);
  const int resident = alone ? 1 : resident_blocks(work.shared_memory, thread_sums, warps, device);
  const double clocks = rounds_clocks(blocks, parts, resident, device, block);
  return seconds_of(warpgroup_start_clocks + clocks, work.bytes, chip);
}

double sliding_window_seconds(const SlidingWork& work, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  constexpr int resident = 2;
  const double warps = work.threads / warp;
  const bool f64 = work.type == KILN_DATA_DOUBLE, narrow = size_of(work.type) == 2;
  const double lanes = f64 ? chip.f64 : chip.f32;
  const double once = sliding_first_clocks + work.steps * sliding_step_clocks +
                      work.products * work.threads / lanes / sliding_share *
                          (work.channels_inner ? sliding_channels_inner : 1) *
                          (narrow ? sliding_narrow : 1);
  const auto block = [&](double beside) {
    return beside * once * (1 + sliding_waiting_warps / (beside * warps));
  };
  return seconds_of(rounds_clocks(work.blocks, 1, resident, device, block), work.bytes, chip);
}

double direct_seconds(const DirectWork& work, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  constexpr double resident_threads = 2048;
  const double slots = resident_threads * device.multiprocessors;
  const double rounds = std::max(1.0, std::ceil(work.threads / slots));
  const double waits = rounds * work.products * direct_wait;
  const double issue = work.threads * work.products * direct_instructions /
                       (warp * issue_width * device.multiprocessors);
  return seconds_of(direct_first_clocks + std::max(waits, issue), work.bytes, chip);
}

double clocks_to_seconds(double clocks, double bytes, const DeviceDescription& device) {
  return seconds_of(clocks, bytes, rates_of(device));
}

double memory_bound_seconds(double bytes, const DeviceDescription& device) {
  return seconds_of(direct_first_clocks, bytes, rates_of(device));
}

}  // namespace kiln
