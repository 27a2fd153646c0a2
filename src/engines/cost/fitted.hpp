// The constants of the cost model that were fitted to measured times, by family of kernels. Their
// values are in a file for each family of chips, fitted_sm_90a.inc, which `kiln fit` writes; what a
// chip's data sheet or its driver says is in chips.cpp, and counted work in the engines.
//
// The last word of a name is its unit: clocks are those of a multiprocessor; a share multiplies the
// time or the work that it names; instructions are a thread's; warps are how many hide a wait.
#pragma once

#include "device/device.hpp"

namespace kiln {

// Of several families.
struct SharedConstants {
  double scattered_store_clocks;  // to store 32 results one by one
  double row_copies_share;  // of a row copy (a thread copies one place of a row) to a plain one
};

// Matrix products whose operands are gathered element by element.
struct GatheredGemmConstants {
  // Products, instructions and shared-memory wavefronts of a step overlap in part: each counts with
  // a share of its own clocks. Then the instructions for an element that may lie in the padding,
  // and a column's element relative to a row's.
  struct Gather {
    double products_share, issue_share, shared_memory_share, bounds_instructions,
        column_copies_share;
  };
  Gather mma, mma_f64, fma, fma_f64;  // f64 kernels issue the copies among the products
  double copy_instructions;   // of an element from global to shared memory, index arithmetic too
  double split_instructions;  // an f32 into hi and lo
  double loop_instructions;
  double operand_read_wavefronts;  // of an operand of the tensor cores
  // A multiprocessor with w warps needs (1 + these / w) times as long, because a few warps hide
  // each other's waits only in part. The longer products take, the less.
  double fma_waiting_warps, mma_waiting_warps, mma_split_waiting_warps, mma_f64_waiting_warps;
  double lone_block_split_share;  // of 3xTF32 where a block is alone on its multiprocessor
  double step_clocks;             // of a step's barrier on the FMA units
  double first_clocks;            // before the first step
  double vector_store_clocks, neighbour_store_clocks;  // for 32 results
  double exchange_clocks;        // of sums of a cluster or slices, each load of the stages' memory
  double exchanged_sums_clocks;  // of 32 sums
  // Tiles of uneven work: the part of the longest one that runs after all others, and the loss on
  // the FMA units for every 128 more threads.
  double late_share, mma_f64_late_share, uneven_threads_share;
};

// Products by mma.sync whose operands ldmatrix reads, a fragment at a time.
struct MmaFragmentConstants {
  // Of a fragment: of its products' clocks, of those of its reads of shared memory, and besides;
  // for 32 copies; for a stage of several steps. Fewer than enough_warps do not hide each other's
  // waits.
  struct Costs {
    double products_share, reads_share, fragment_clocks, copies_clocks, stage_clocks, lone_warps;
  };
  Costs f32, f64;
  double enough_warps;
  double transposed_f32_share, transposed_16_bits_share, transposed_f64_share;  // reads along rows
  double conflict_share;         // columns that hit the same banks
  double split_clocks;           // of 32 f32 into hi and lo
  double gathered_copies_share;  // a scalar copy relative to a plain one
  double first_clocks;           // before the first step
  double store_clocks;           // for 32 results
  double exchange_clocks;        // of sums, for each load of shared memory
  double exchanged_sums_clocks;  // of 32 sums, for each doubling of the split count
  double wait_clocks;            // where a block waits for memory
  double start_clocks;           // of a launch, besides what every launch costs
  double staged_first_clocks;    // before the first step where stages hold several steps
  double staged_copies_clocks;   // for 32 copies of the first such stage
  // Waiting for a stage of several steps that is not loaded far ahead; 3xTF32 does not wait.
  double landing_16_bits_clocks, landing_f32_clocks, landing_f64_clocks;
  double l2_bytes_a_clock;  // past L1 to each multiprocessor while all of them load
};

// Products by wgmma whose operand A is read into registers, a fragment at a time.
struct WgmmaFragmentConstants {
  struct Fragment {
    double left_clocks, right_clocks;  // for 64 lines of operand A, and for a line of operand B
  };
  Fragment split, whole, split_matrices;  // the last where ldmatrix reads operand A
  double step_clocks;                     // of a step of the last
  double word_copies_share;               // a copy of a word relative to one of 16 bytes
  double conflict_clocks;                 // each further access where words hit the same banks
  double row_word_copies_share;           // row copies of words, which overlap with products
  double products_share;                  // of a fragment's products' clocks, besides its own
  double lone_warps;                      // few warps with products in flight
  double copies_clocks;                   // for 32 copies
  double gathered_copies_share, gathered_pairs_share;  // scalar copies, and copies of pairs
  double stage_clocks;
  double first_clocks;           // before the first stage
  double store_clocks;           // for 32 results
  double exchange_clocks;        // of sums, for each load of shared memory
  double exchanged_sums_clocks;  // of 32 sums, for each doubling of the split count
  double start_clocks;           // of a launch, besides what every launch costs
  double move_clocks;            // for a warp to move a register, with nothing to overlap
};

// Products by wgmma that read both operands from shared memory.
struct WgmmaConstants {
  double products_share;                            // of a step to its products' own clocks
  double filter_clocks_a_byte, halo_clocks_a_byte;  // copied
  double step_clocks, lone_step_clocks;  // the latter where a single warpgroup is alone, besides
  double first_clocks;                   // before the first step
  double store_clocks;                   // for 32 results
  double exchanged_sums_clocks;          // of 32 sums, for each doubling of the split count
  double start_clocks;                   // of a launch, besides what every launch costs
  // Where elements are gathered one by one: of an element; of a step; of a group of steps; before
  // the first one, and for each element of a thread; of a result. The effect of numbers of warps
  // other than eight on gathering and storing. A step's products relative to one product.
  struct Gathering {
    double element_clocks, element_warps_share, step_clocks, group_clocks, first_clocks,
        first_element_clocks, result_clocks, result_warps_share, products_share;
  };
  Gathering gathered_16_bits, gathered_f32, gathered_split;
  double gathered_halo_share;       // an element of a halo relative to one of the filter
  double gathered_short_run_share;  // added where few pixels are contiguous
  double l2_bytes_a_clock;          // through L1 to each multiprocessor while all of them load
};

// The dense engines, forward and data gradient.
struct DenseConstants {
  double step_share, step_clocks;  // of a step to its products' clocks, and besides
  // A row of at most 128 bytes from L2 to shared memory: where each multiprocessor has its own,
  // where all have the same, and where these are more than large_filter_bytes. (A row of 32 bytes
  // takes no less than one of 128.)
  double own_line_clocks, shared_line_clocks, large_filter_line_clocks, large_filter_bytes;
  double first_clocks;      // the first operands of a block
  double slab_clocks;       // 64 rows of 64 pixels on their way out, by a warpgroup
  double half_lines_share;  // the same in lines of 64 bytes
  // By threads: two accesses of a warp for each, and no other tile meanwhile; single elements that
  // lie apart, as those of a phase do.
  double access_clocks, phase_access_clocks;
  // Products and memory overlap but for a share of the shorter one. Some operands are in L2 yet.
  double apart_share, memory_share;
  // One halo for all taps: of a step to its products, and besides; the last results of a block,
  // which nothing hides; what does not overlap.
  double halo_step_share, halo_step_clocks, halo_last_clocks, halo_apart_share;
};

// The dense engines' filter gradient.
struct DenseWgradConstants {
  // Of a step to its products, and besides; a copy of 64 channels of a step's pixels, which one
  // thread asks for; what all have from L2, for each multiprocessor; a line where one waits for
  // them alone. The exchange of a cluster's sums, and for each 64 x 64 of them. A round's start,
  // where nothing hides it, and a block's results, for each 64 x 64: stored by threads, and, of a
  // persistent block, through slabs.
  struct Costs {
    double step_share, step_clocks, ask_clocks, l2_bytes_a_clock, line_clocks, exchange_clocks,
        exchanged_sums_clocks, start_clocks, result_clocks, slab_clocks;
  };
  Costs of_16_bits, of_f32;
  double promoted_wait_clocks;  // of three products: how long the tensor cores wait for the adders
  double clusters_share;        // of the multiprocessors that clusters of 4 and more fill
};

// One channel a group on the FMA units, and Toeplitz products.
struct DepthwiseConstants {
  // A thread that slides along a row: its share of one multiply-add a clock and lane; how much
  // longer it takes with channels innermost, and with 16 bits; of a channel; of each block (not
  // measured: set so that it is not chosen for problems of a few microseconds).
  double sliding_share, sliding_waiting_warps, sliding_channels_inner_share, sliding_narrow_share,
      sliding_step_clocks, sliding_first_clocks;
  // One channel a group: instructions of a thread, and of each of its copies; the parts of the
  // issue rate that they reach, that multiply-adds reach, which wait for nothing, and of memory's
  // rate.
  double thread_instructions, copy_instructions, issue_share, product_share, memory_share;
  // Halos by the copy engine: a pair of channels of a place (read and converted), a pair of weights
  // from shared memory, a result; the part of the issue rate that so many warps of a scheduler
  // reach; a block before its first tile; an instruction that is fetched from memory for the first
  // time; each tile's barrier and first reads; the part of memory's rate.
  double halo_place_instructions, halo_weight_instructions, halo_result_instructions, halo_share,
      halo_waiting_warps, halo_first_clocks, halo_first_instruction_clocks, halo_tile_clocks,
      halo_memory_share;
  // Counted, not measured: a pixel of the halo, a pixel of the result, a box, a weight, a tile's
  // barriers; the part of the tensor cores' rate that two warps a scheduler reach.
  double toeplitz_pixel_clocks, toeplitz_result_clocks, toeplitz_box_clocks, toeplitz_weight_clocks,
      toeplitz_tile_clocks, toeplitz_share, toeplitz_memory_share;
};

// Small groups on the tensor cores: wavefronts and products overlap, and a share of either rate is
// reached with enough warps on a multiprocessor.
struct GroupedConstants {
  double rate_share, enough_warps;
  double first_clocks;  // of a block: loading the filter and the first tile
};

// Chains of multiply-adds on operands from the caches.
struct DirectConstants {
  // From one product of a thread to its next, an access of cold memory (not measured, but set so
  // that the direct engines are chosen last).
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

// Those of the device's family of chips: of the newest one fitted that is no newer, or the first.
const FittedConstants& fitted_of(const DeviceDescription& device);

// While one lives, the estimates of the whole process use its constants, for every device. Choices
// that are remembered (choice.cpp) keep those that they were made with.
class TrialConstants {
 public:
  explicit TrialConstants(const FittedConstants& constants);
  TrialConstants(const TrialConstants&) = delete;
  TrialConstants& operator=(const TrialConstants&) = delete;
  ~TrialConstants();
};

}  // namespace kiln
