// How long a kernel will take, told before it exists: what candidates are chosen by. The speed of
// chips is in chips.cpp, and what the models share in common.hpp. Each model is in a file of its
// own: gathered_gemm.cpp, mma_fragments.cpp, wgmma_fragments.cpp, wgmma.cpp, depthwise.cpp,
// direct.cpp; that of the dense engines, with what it asks for, in dense_cost.cpp.
//
// A kernel of tiles is blocks of `steps` each. A step's time is what it asks of the multiprocessor
// (products of its FMA or tensor units, issue slots, accesses of shared memory), longer where few
// warps are there to hide each other's waits, and a fixed wait. Blocks go over the multiprocessors
// in rounds; clusters, which share a tile's reduction, pack less well. To that comes what every
// block costs (its first operands, its results, the exchange of sums with its cluster) and every
// launch. No kernel is faster than the memory lets it be.
#pragma once

#include <cstdint>

#include "device/device.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

// What the layouts of a tile weigh: clocks in which a scheduler's tensor cores do a product of
// 16 x 8 over 32 bytes by mma.sync, and in which a multiprocessor issues the copy of a chunk of a
// line (line_loader.cuh), of a piece of a row, or of a pair of elements that makes a word of one;
// half of these, for they run beside the products.
inline constexpr double product_clocks = 6.5;
constexpr double product_clocks_of(std::int64_t element_bytes) {
  return element_bytes == 8 ? 16 : product_clocks;
}
inline constexpr double chunk_copy_clocks = 28 / 128.0 / 2, row_copy_clocks = 4 / 128.0 / 2,
                        row_pair_clocks = 10 / 128.0 / 2;

// How results go to memory: 16 bytes by a thread at a time, or single ones, of neighbouring places
// by neighbouring threads or wherever a thread's lie.
enum class ResultStores { vectors, neighbours, scattered };

// A matrix product in tiles, gathered element by element.
struct GemmWork {
  DataType type = KILN_DATA_FLOAT;
  std::int64_t tiles = 0;  // of the result
  double results = 0;      // in all tiles, of which the last ones may be mostly idle
  double steps = 0;        // of tile.k products: a tile's mean, before it is divided into parts
  double largest = 1;      // the work of the largest tile, against the mean
  bool bounds = false;     // elements may lie in the padding
  ResultStores stores = ResultStores::vectors;
  double bytes = 0;  // of the operands and the result, once each
};
// Of one execution whose clusters of `parts` blocks share each tile's reduction.
double gemm_seconds(const GemmTile& tile, const GemmWork& work, int parts,
                    const DeviceDescription& device);

// A matrix product on the tensor cores whose operands registers take from shared memory by
// ldmatrix, 32 bytes of the reduction (a fragment) at a time.
struct FragmentWork {
  DataType type = KILN_DATA_FLOAT;
  bool split = false;  // f32 in three products
  FragmentShape shape;
  double shared_memory = 0;  // bytes of a block
  std::int64_t tiles = 0;
  double results = 0;
  double fragments = 0;    // of a tile's reduction
  int step_fragments = 2;  // between two barriers
  double waits = 0;        // of a tile, for memory, with nothing else to do
  // Where the rows' operand comes to shared memory in stages of several steps: of a tile, and the
  // copies of each.
  double stages = 0, stage_copies = 0;
  double landings = 0;         // of a tile's stages, on which all its threads wait
  bool transposed = false;     // the rows' operand lies along the rows
  double column_accesses = 1;  // of shared memory, in which a warp reads a word of columns a lane
  // Threads of many sums have as many registers as min_blocks blocks leave, whatever they need.
  bool all_registers = false;
  double copies = 0;  // of a tile, and the bytes of each
  double copy_bytes = 16;
  bool one_by_one = false;  // copies are of elements, gathered, not of what lies side by side
  double row_copies = 0;    // besides, of rows from which a thread always copies the same place
  double row_copy_bytes = 0;
  bool row_words_beside = false;  // single words, beside the products of warpgroups
  bool scattered = false;         // results go to memory one by one, not 16 bytes at a time
  // By warpgroups: registers that a thread moves, of a tile, for its sums to go out line by line.
  double moves = 0;
  bool right_stays = false;  // by warpgroups, in shared memory for all fragments of a tile
  // By warpgroups, whose left operand ldmatrix reads: steps of a tile, each with its barrier.
  double left_matrix_steps = 0;
  double word_copies = 0;  // of a tile, of single elements that lie side by side
  double bytes = 0;
};
double fragment_seconds(const FragmentWork& work, int parts, const DeviceDescription& device);
// The same by warpgroups, whose left operand is the tile's columns, read into registers.
double warpgroup_fragment_seconds(const FragmentWork& work, int parts,
                                  const DeviceDescription& device);

// A matrix product by warpgroups, 64 rows each, that read the columns where shared memory has them.
struct WarpgroupWork {
  DataType type = KILN_DATA_FLOAT;
  int m = 0, n = 0, threads = 0;
  double shared_memory = 0;  // bytes of a block
  std::int64_t tiles = 0;
  double results = 0;
  double steps = 0;  // of a tile's reduction
  int step_fragments = 4;
  bool split = false;                       // f32 in three products
  double halo_bytes = 0, filter_bytes = 0;  // of a tile, copied to shared memory
  // Where single elements are copied: groups of steps between two barriers, halos one after the
  // other, and pixels of one that lie side by side.
  double groups = 0, halos = 0, halo_run = 0;
  double bytes = 0;
};
double warpgroup_seconds(const WarpgroupWork& work, int parts, const DeviceDescription& device);

// Threads that slide along rows and reuse each element from a register.
struct SlidingWork {
  DataType type = KILN_DATA_FLOAT;
  double blocks = 0, threads = 0;  // threads of a block
  double products = 0;             // of a thread
  double steps = 0;                // of a block: channels
  double copies = 0;               // of a thread, for a channel
  bool channels_inner = false;     // neighbours in a row lie apart in memory
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

// What moves `bytes` and computes next to nothing.
double memory_bound_seconds(double bytes, const DeviceDescription& device);

}  // namespace kiln
