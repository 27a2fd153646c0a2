// The constants of the cost model that were fitted to measured times, by family of kernels. Each
// family of chips has a file with their values (fitted_sm_90a.inc), which `kiln fit` writes.
// Figures from a chip's data sheet or driver are in chips.cpp; the engines count the work.
//
// The last word of a name is its unit: clocks of a multiprocessor; instructions of a thread; warps
// that it takes to hide a wait. A share multiplies the time or the work that it names.
#pragma once

#include "device/device.hpp"

namespace kiln {

// Constants that several families share.
struct SharedConstants {
  double scattered_store_clocks;  // to store 32 results one by one
  double
      row_copies_share;  // a row copy (a thread copies one place of a row) relative to a plain one
};

// Matrix products whose operands are gathered element by element.
struct GatheredGemmConstants {
  // Products, instructions and shared-memory wavefronts of a step overlap in part, so each counts
  // with a share of its own clocks. bounds_instructions: for an element that may be in the padding;
  // column_copies_share: the copy of a column's element relative to a row's.
  struct Gather {
    double products_share, issue_share, shared_memory_share, bounds_instructions,
        column_copies_share;
  };
  Gather mma, mma_f64, fma, fma_f64;  // f64 kernels issue the copies among the products
  double copy_instructions;           // to copy an element to shared memory, with index arithmetic
  double split_instructions;          // to split an f32 into hi and lo
  double loop_instructions;
  double operand_read_wavefronts;  // to read an operand of the tensor cores
  // A multiprocessor with w warps needs (1 + waiting_warps / w) times as long, because a few warps
  // hide each other's waits only in part. The longer products take, the smaller the constant is.
  double fma_waiting_warps, mma_waiting_warps, mma_split_waiting_warps, mma_f64_waiting_warps;
  double lone_block_split_share;  // of 3xTF32 if a block is alone on its multiprocessor
  double step_clocks;             // of a step's barrier on the FMA units
  double first_clocks;            // before the first step
  double vector_store_clocks, neighbour_store_clocks;  // for 32 results
  // A cluster or slices exchange sums: clocks for each time that the stages' memory is filled, and
  // for 32 sums.
  double exchange_clocks;
  double exchanged_sums_clocks;
  // Tiles of uneven work: the share of the longest tile that runs after all others, and the loss on
  // the FMA units for each 128 threads beyond the first 128.
  double late_share, mma_f64_late_share, uneven_threads_share;
};

// Products by mma.sync whose operands ldmatrix reads, a fragment at a time.
struct MmaFragmentConstants {
  // products_share and reads_share: of a fragment's products and of its reads of shared memory;
  // fragment_clocks: of a fragment besides; copies_clocks: for 32 copies; stage_clocks: for a stage
  // of several steps. lone_warps: with fewer than enough_warps, warps do not hide all waits.
  struct Costs {
    double products_share, reads_share, fragment_clocks, copies_clocks, stage_clocks, lone_warps;
  };
  Costs f32, f64;
  double enough_warps;
  double transposed_f32_share, transposed_16_bits_share, transposed_f64_share;  // reads along rows
  double conflict_share;         // reads of columns with bank conflicts
  double split_clocks;           // to split 32 f32 into hi and lo
  double gathered_copies_share;  // a scalar copy relative to a plain one
  double first_clocks;           // before the first step
  double store_clocks;           // for 32 results
  double exchange_clocks;        // of sums, for each time that shared memory is filled
  double exchanged_sums_clocks;  // of 32 sums, for each doubling of the split count
  double wait_clocks;            // when a block waits for memory
  double start_clocks;           // of a launch, besides what every launch costs
  double staged_first_clocks;    // before the first step if stages hold several steps
  double staged_copies_clocks;   // for 32 copies of the first such stage
  // Clocks of waiting for a stage of several steps that is not loaded far ahead; 3xTF32 never
  // waits.
  double landing_16_bits_clocks, landing_f32_clocks, landing_f64_clocks;
  double l2_bytes_a_clock;  // from L2 to each multiprocessor, bypassing L1, while all of them load
};

// Products by wgmma whose operand A is read into registers, a fragment at a time.
struct WgmmaFragmentConstants {
  struct Fragment {
    double left_clocks, right_clocks;  // for 64 lines of operand A, and for a line of operand B
  };
  Fragment split, whole, split_matrices;  // split_matrices: ldmatrix reads operand A
  double step_clocks;                     // of a step, with split_matrices
  double word_copies_share;               // a copy of a word relative to one of 16 bytes
  double conflict_clocks;                 // of each further wavefront of a read with bank conflicts
  double row_word_copies_share;           // row copies of words, which overlap with products
  double products_share;                  // of the products of a fragment, besides its own clocks
  double lone_warps;                      // how much longer few warps with products in flight take
  double copies_clocks;                   // for 32 copies
  double gathered_copies_share, gathered_pairs_share;  // scalar copies, and copies of pairs
  double stage_clocks;
  double first_clocks;           // before the first stage
  double store_clocks;           // for 32 results
  double exchange_clocks;        // of sums, for each time that shared memory is filled
  double exchanged_sums_clocks;  // of 32 sums, for each doubling of the split count
  double start_clocks;           // of a launch, besides what every launch costs
  double move_clocks;            // for a warp to move a register, which nothing overlaps
};

// Products by wgmma that read both operands from shared memory.
struct WgmmaConstants {
  double products_share;                            // a step relative to its products' clocks
  double filter_clocks_a_byte, halo_clocks_a_byte;  // of copies
  // Of a step; lone_step_clocks are added if a multiprocessor has a single warpgroup.
  double step_clocks, lone_step_clocks;
  double first_clocks;           // before the first step
  double store_clocks;           // for 32 results
  double exchanged_sums_clocks;  // of 32 sums, for each doubling of the split count
  double start_clocks;           // of a launch, besides what every launch costs
  // Kernels that gather elements one by one. Clocks of an element, a step and a group of steps;
  // before the first group, and for each of its elements of a thread; for 32 results. warps_share:
  // how gathering or storing depends on the number of warps, relative to eight warps.
  // products_share: a step's products relative to a single product (3xTF32 has three).
  struct Gathering {
    double element_clocks, element_warps_share, step_clocks, group_clocks, first_clocks,
        first_element_clocks, result_clocks, result_warps_share, products_share;
  };
  Gathering gathered_16_bits, gathered_f32, gathered_split;
  double gathered_halo_share;       // an element of a halo relative to one of the filter
  double gathered_short_run_share;  // added where few pixels are contiguous
  double l2_bytes_a_clock;  // from L2 to each multiprocessor, through L1, while all of them load
};

// The dense engines, forward and data gradient.
struct DenseConstants {
  double step_share, step_clocks;  // a step relative to its products' clocks, and clocks besides
  // A row of at most 128 bytes from L2 to shared memory: if each multiprocessor loads another row,
  // if all load the same row, and the latter if all such rows are more than large_filter_bytes. (A
  // row of 32 bytes takes as long as one of 128.)
  double own_line_clocks, shared_line_clocks, large_filter_line_clocks, large_filter_bytes;
  double first_clocks;  // the first operands of a block
  // Pixels that go through registers on their way to the products (channels-first f32): clocks of a
  // step besides, for each 64 pixels of a warpgroup, and the rows below which products of such
  // pixels take no less time.
  double pixel_words_clocks, pixel_words_least_rows;
  double slab_clocks;       // for a warpgroup to store 64 rows of 64 pixels
  double half_lines_share;  // the same in lines of 64 bytes, relative to lines of 128
  // Results that threads store: clocks of an access of a warp, of which each store takes two, with
  // no other tile meanwhile. The second is for single elements that are not contiguous, such as
  // those of a phase.
  double access_clocks, phase_access_clocks;
  // apart_share: the share of the shorter one of products and memory accesses that does not overlap
  // with the longer one. memory_share: of the bytes, because some operands are still in L2.
  double apart_share, memory_share;
  // One halo for all taps: a step relative to its products' clocks, and clocks besides; the last
  // results of a block, which nothing hides; the share that does not overlap.
  double halo_step_share, halo_step_clocks, halo_last_clocks, halo_apart_share;
  // Channels-first tensors, filters of several taps: a step relative to its products' clocks, and
  // how much longer it takes if pixels are operand A; a line of a halo from L2 to shared memory; to
  // read or write 8 pixels of a halo or a shifted copy of it; the same of a halo besides.
  double planar_step_share, planar_pixels_left_share, planar_line_clocks, shifted_vector_clocks,
      shifted_halo_clocks;
};

// The dense engines' filter gradient.
struct DenseWgradConstants {
  // step_share, step_clocks: a step relative to its products' clocks, and clocks besides.
  // few_stages_share: how much longer products take with less than four stages. copy_clocks: of
  // each copy of 64 channels of a step's pixels, besides line_clocks of each pixel's line.
  // odd_line_share: how much longer it takes for lines that do not begin at multiples of their
  // bytes. l2_bytes_a_clock: from L2 to each multiprocessor while all of them load different lines;
  // odd_l2_share as above. Neighbouring blocks that read the same pixels at a time are served
  // together: up to merged blocks, or merged_in_clusters if the blocks of a cluster have different
  // pixels. start_clocks: of a round that nothing hides; first_clocks: before the first step.
  // exchange_clocks, exchanged_sums_clocks: the exchange of a cluster's sums, and for each 64 x 64
  // of them; left_sums_clocks: to leave so many in the workspace; result_clocks, slab_clocks: to
  // store them as results by threads, and through slabs (persistent blocks). apart_share: of the
  // shorter of computing and moving memory, what the longer does not hide.
  struct Costs {
    double step_share, step_clocks, few_stages_share, copy_clocks, line_clocks, odd_line_share,
        l2_bytes_a_clock, odd_l2_share, merged, merged_in_clusters, first_clocks, start_clocks,
        exchange_clocks, exchanged_sums_clocks, left_sums_clocks, result_clocks, slab_clocks,
        apart_share;
  };
  Costs of_16_bits, of_f32;
  // The second step of several groups: seconds of its launch, which the first step's end hides in
  // part, and of each round of loads; the rate of L2, which all sums pass through twice.
  double second_seconds, round_seconds, second_bytes_a_second;
  double promoted_wait_clocks;  // 3xTF32: how long the tensor cores wait for each promotion
  // To store a result whose neighbours in dw are of other taps, of either size, while all
  // multiprocessors store such; nothing overlaps with it. H200: set by hand to some 20 times of the
  // dense engine behind copies, 2026-11-26; wgrad_nhwc_mma's one time would have it at about half.
  double single_clocks;
};

// Depthwise convolutions on the FMA units, and Toeplitz products.
struct DepthwiseConstants {
  // Threads that slide along a row. sliding_share: the share of one multiply-add per clock and lane
  // that is reached; channels_inner_share and narrow_share: how much longer it takes with channels
  // innermost, and with 16 bits; step_clocks: of a channel; first_clocks: of each block (not
  // measured, but set so that the kernel is not chosen for problems of a few microseconds).
  double sliding_share, sliding_waiting_warps, sliding_channels_inner_share, sliding_narrow_share,
      sliding_step_clocks, sliding_first_clocks;
  // The same with one channel a group: instructions of a thread, and of each of its copies; the
  // shares of the issue rate that these reach and that multiply-adds reach, and of memory's rate.
  double thread_instructions, copy_instructions, issue_share, product_share, memory_share;
  // Halos that the copy engine loads. Instructions to read and convert a place's pair of channels,
  // to read a pair of weights from shared memory, and for a result. halo_share: the share of the
  // issue rate that is reached with many warps on a scheduler; halo_waiting_warps: how much fewer
  // warps lose. Clocks of a block before its first tile, of an instruction that is fetched for the
  // first time, and of each tile's barrier and first reads. The share of memory's rate.
  double halo_place_instructions, halo_weight_instructions, halo_result_instructions, halo_share,
      halo_waiting_warps, halo_first_clocks, halo_first_instruction_clocks, halo_tile_clocks,
      halo_memory_share;
  // Toeplitz products, counted and not measured: clocks of a pixel of the halo, a pixel of the
  // result, a box, a weight and a tile's barriers; the share of the tensor cores' rate that two
  // warps on a scheduler reach, and of memory's rate.
  double toeplitz_pixel_clocks, toeplitz_result_clocks, toeplitz_box_clocks, toeplitz_weight_clocks,
      toeplitz_tile_clocks, toeplitz_share, toeplitz_memory_share;
};

// Small groups on the tensor cores: wavefronts and products overlap. With enough_warps warps on a
// multiprocessor, rate_share of either rate is reached. halo_: grouped_halo_nhwc_mma, whose copies
// of a tile overlap the products of the one before.
struct GroupedConstants {
  double rate_share, enough_warps;
  double first_clocks;  // of a block: loading the filter and the first tile
  double halo_rate_share, halo_memory_share;
  double halo_first_clocks, halo_tile_clocks;  // of a tile: barriers
};

// Chains of multiply-adds on operands from the caches.
struct DirectConstants {
  // From one product of a thread to its next: an access of memory that is in no cache (not
  // measured, but set so that the direct engines are chosen last).
  double wait_clocks;
  double product_instructions, output_instructions;  // most of them index arithmetic
  double first_clocks;                               // of a launch
};

struct FittedConstants {
  SharedConstants shared;
  GatheredGemmConstants gathered_gemm;
  MmaFragmentConstants mma_fragments;
  WgmmaFragmentConstants wgmma_fragments;
  WgmmaConstants wgmma;
  DenseConstants dense;
  DenseWgradConstants dense_wgrad;
  DepthwiseConstants depthwise;
  GroupedConstants grouped;
  DirectConstants direct;
};

// The constants for a device: those of the newest fitted family of chips that is no newer than the
// device, else of the oldest one.
const FittedConstants& fitted_of(const DeviceDescription& device);

// While such an object exists, all estimates of this process use its constants, for every device;
// there may be only one at a time, and the constants have to outlive it.
// Choices that are remembered (choice.cpp) keep the estimates that they were made with.
class TrialConstants {
 public:
  explicit TrialConstants(const FittedConstants& constants);
  TrialConstants(const TrialConstants&) = delete;
  TrialConstants& operator=(const TrialConstants&) = delete;
  ~TrialConstants();
};

}  // namespace kiln
