// Estimated times of kernels, by which candidates are chosen (README.md). The speed of chips is in
// chips.cpp, what the models share in common.hpp. Each model has a file: gathered_gemm.cpp,
// mma_fragments.cpp, wgmma_fragments.cpp, wgmma.cpp, depthwise.cpp, direct.cpp, grouped.cpp;
// dense_cost.cpp has that of the dense engines.
//
// A tiled kernel is blocks of `steps` steps each. A step's time is what it asks of the
// multiprocessor (FMA units or tensor cores, issue slots, shared memory), longer where few warps
// hide each other's waits, plus a fixed wait. Blocks run over the multiprocessors in rounds;
// clusters pack less well. The costs of each block (first operands, results, exchange of sums with
// its cluster) and of the launch are added. No estimate is below the time that memory needs.
#pragma once

#include <cstdint>

#include "device/device.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

// Clocks by which layouts of a tile are compared. product_clocks: of a scheduler's tensor cores for
// an m16n8 product over 32 bytes by mma.sync. The others: of a multiprocessor to issue the copy of
// a chunk of a line (line_loader.cuh), of a piece of a row, or of a pair of elements that makes a
// word. Copies count half, because they overlap with products.
inline constexpr double product_clocks = 6.5;
constexpr double product_clocks_of(std::int64_t element_bytes) {
  return element_bytes == 8 ? 16 : product_clocks;
}
inline constexpr double chunk_copy_clocks = 28 / 128.0 / 2, row_copy_clocks = 4 / 128.0 / 2,
                        row_pair_clocks = 10 / 128.0 / 2;

// How results are stored: 16 bytes a thread at a time; single elements, neighbours by neighbouring
// threads; or single elements scattered.
enum class ResultStores { vectors, neighbours, scattered };

// A tiled matrix product whose operands are gathered element by element.
struct GemmWork {
  DataType type = KILN_DATA_FLOAT;
  std::int64_t tiles = 0;  // tiles of the result
  double results = 0;      // results in all tiles, idle ones of the last tiles included
  double steps = 0;        // steps of tile.k products: the mean of a tile, before it is split
  double largest = 1;      // the largest tile's work over the mean
  bool bounds = false;     // elements may lie in the padding
  ResultStores stores = ResultStores::vectors;
  double bytes = 0;  // bytes of operands and result, once each
};
// Seconds of one execution with split count `parts`.
double gemm_seconds(const GemmTile& tile, const GemmWork& work, int parts,
                    const DeviceDescription& device);

// A matrix product on the tensor cores whose operands go to registers by ldmatrix, a fragment (32
// bytes of the reduction) at a time.
struct FragmentWork {
  DataType type = KILN_DATA_FLOAT;
  bool split = false;  // f32 in three products
  FragmentShape shape;
  double shared_memory = 0;  // bytes of a block
  std::int64_t tiles = 0;
  double results = 0;
  double fragments = 0;    // of a tile's reduction
  int step_fragments = 2;  // fragments between two barriers
  double waits = 0;        // how often a tile waits for memory with nothing to overlap
  // If the rows' operand is loaded in stages of several steps: stages of a tile, and copies of each
  // stage.
  double stages = 0, stage_copies = 0;
  double landings = 0;         // stages of a tile for which all threads wait
  bool transposed = false;     // the rows' operand is contiguous along the rows
  double column_accesses = 1;  // wavefronts of a warp's read of one word of columns per lane
  // Threads with many accumulators get all registers that min_blocks blocks leave, needed or not.
  bool all_registers = false;
  double copies = 0;  // copies of a tile, and the bytes of each
  double copy_bytes = 16;
  bool scalar_copies = false;  // copies are of single gathered elements (scalar copies)
  double row_copies = 0;       // further copies: a thread copies the same place of every row
  double row_copy_bytes = 0;
  bool row_words_beside = false;  // the row copies are single words and overlap with wgmma
  bool scattered = false;         // results are stored one by one, not 16 bytes at a time
  // wgmma: registers that a thread moves in each tile to store its accumulators line by line.
  double moves = 0;
  bool right_stays = false;  // wgmma: operand B stays in shared memory for all fragments of a tile
  // wgmma whose operand A is read by ldmatrix: steps of a tile, each with a barrier.
  double left_matrix_steps = 0;
  double word_copies = 0;  // of a tile: scalar copies of contiguous elements
  double bytes = 0;        // bytes of operands and result, once each
};
// Seconds of one execution by mma.sync with split count `parts`.
double fragment_seconds(const FragmentWork& work, int parts, const DeviceDescription& device);
// The same by wgmma, with the tile's columns as operand A in registers.
double warpgroup_fragment_seconds(const FragmentWork& work, int parts,
                                  const DeviceDescription& device);

// A matrix product by wgmma, 64 rows a warpgroup, that reads the columns from shared memory.
struct WarpgroupWork {
  DataType type = KILN_DATA_FLOAT;
  int m = 0, n = 0, threads = 0;
  double shared_memory = 0;  // bytes of a block
  std::int64_t tiles = 0;
  double results = 0;
  double steps = 0;  // of a tile's reduction
  int step_fragments = 4;
  bool split = false;                       // f32 in three products
  double halo_bytes = 0, filter_bytes = 0;  // bytes of a tile copied to shared memory
  // If elements are copied one by one: groups of steps between two barriers, halos of a tile, and
  // contiguous pixels in a halo.
  double groups = 0, halos = 0, halo_run = 0;
  double bytes = 0;  // bytes of operands and result, once each
};
// Seconds of one execution with split count `parts`.
double warpgroup_seconds(const WarpgroupWork& work, int parts, const DeviceDescription& device);

// Threads that slide along rows and reuse each element from a register.
struct SlidingWork {
  DataType type = KILN_DATA_FLOAT;
  double blocks = 0, threads = 0;  // blocks in all; threads of a block
  double products = 0;             // of a thread
  double steps = 0;                // channels that a block adds up
  double copies = 0;               // of a thread, for each channel
  bool channels_inner = false;     // neighbours in a row are not contiguous in memory
  double bytes = 0;
};
double depthwise_fma_seconds(const SlidingWork& work, const DeviceDescription& device);

// `threads` threads, each with a chain of multiply-adds on operands that it reads from the caches.
struct DirectWork {
  DataType type = KILN_DATA_FLOAT;
  double threads = 0;
  double products = 0;  // of a thread
  double bytes = 0;
};
double direct_seconds(const DirectWork& work, const DeviceDescription& device);

// Seconds of a kernel that moves `bytes` and computes next to nothing.
double memory_bound_seconds(double bytes, const DeviceDescription& device);

}  // namespace kiln
