// The tiles of the engines that multiply matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/engine.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// A tile of a matrix product: rows M (filters, or channels of dx) x columns N (pixels; in a filter
// gradient, channels x taps) x reduction K.
struct GemmTile {
  int m = 0, n = 0, k = 0;         // K of one slice's step
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int stages = 0;                  // stages of the operands in shared memory
  int min_blocks = 1;              // blocks that share a multiprocessor, which limits the registers
  int packs_from = 0;  // compute capability below which that limit would spill, so that 1 block is
                       // asked for
  int slices = 1;      // slices of a block, which take turns at its steps

  // Tensor cores: elements along n that a lane reads at a time (at most 16 bytes); 0: FMA units.
  int mma_vector_n = 0;
  bool split = false;  // f32 in three products
  int promote = 0;     // stages between promotions; 0: only at the end

  bool mma() const { return mma_vector_n > 0; }

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};

// A tile of which so many blocks share a multiprocessor, from a compute capability on.
constexpr GemmTile packed(int blocks, int from, GemmTile tile) {
  tile.min_blocks = blocks;
  tile.packs_from = from;
  return tile;
}

// All tiles: on the FMA units, and on the tensor cores for sums of `reduction` products.
std::vector<GemmTile> fma_tiles(DataType type);
std::vector<GemmTile> mma_tiles(const ConvolutionProblem& problem, std::int64_t reduction);

// The refusal if tensor cores cannot or must not compute sums of `reduction` products.
Refusal mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                    const DeviceDescription& device);

// The refusal of f64, which ldmatrix kernels do not take.
Refusal matrices_refusal(const ConvolutionProblem& problem);
// The refusal of matrices_refusal() or of mma_refusal().
Refusal fragment_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                         const DeviceDescription& device);

// Split counts that are offered. As many clusters of 8 blocks run at once as of 7, and clusters of
// 9 to 15 blocks leave more of the chip idle.
inline constexpr int cluster_sizes[] = {1, 2, 3, 4, 5, 6, 8, 16};
static_assert(std::equal(std::begin(cluster_sizes) + 1, std::end(cluster_sizes),
                         counted_cluster_sizes.begin(), counted_cluster_sizes.end()));

// The split counts of a tile, up to `most`, that leave each block some of the `steps` of the
// reduction.
std::vector<int> parts_of(const DeviceDescription& device, double steps, int most);

// The layout of the operands' tiles in shared memory. vector: elements of compute_t in 16 bytes;
// pitch_m, pitch_n: elements from one step of the reduction to the next. Pitches are padded against
// bank conflicts: by 16 bytes if lanes run along the reduction, which then write 8 steps of 4
// elements; for the tensor cores always by 32 bytes, because they read 16 bytes at each of 4 steps
// and 2 columns.
struct GemmStages {
  int vector, pitch_m, pitch_n;
  GemmStages(const GemmTile& tile, DataType type, bool m_lanes_on_k, bool n_lanes_on_k);
  std::uint32_t bytes(const GemmTile& tile, DataType type) const;
};

// The refusal if a block does not have so many bytes of shared memory.
Refusal stages_refusal(std::uint32_t bytes, const DeviceDescription& device);

// Adds the constants of tile and stages that gemm_tile.cuh, sum_registers.cuh and operand_mover.cuh
// need.
void add_gemm_constants(std::vector<Constant>& constants, const GemmTile& tile,
                        const GemmStages& stages, DataType type, const DeviceDescription& device);

// A tile whose operands go from shared memory to registers a fragment at a time. A warp computes 8
// thread_m x 4 thread_n accumulators (4 x 8 threads where pixels are operand A).
struct FragmentShape {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int min_blocks = 1;              // blocks that share a multiprocessor
  bool columns_left = false;
  int slices = 1;  // slices of a block, which take turns at the reduction

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};
// A tile for wgmma, where a thread has all rows of some columns.
constexpr FragmentShape warpgroup_shape(FragmentShape shape) {
  shape.thread_m = shape.m / 4;
  shape.columns_left = true;
  return shape;
}
// Adds the constants of such a tile that tile_sums.cuh and sum_registers.cuh need. run_m, run_n:
// contiguous rows and columns of a thread.
void add_fragment_constants(std::vector<Constant>& constants, const FragmentShape& shape,
                            const ConvolutionProblem& problem, int run_m, int run_n = 2);

// Adds the PTX names of a thread's accumulators (kernel_sources/cuda/sum_registers.cuh): left x
// right products of four each. totals: promoted sums have registers of their own; type: "f32" or
// "f64".
void add_sum_registers(std::vector<Constant>& constants, int left, int right, bool totals,
                       const char* type);

// Adds the parts of the text of a wgmma instruction (kernel_sources/cuda/wgmma.cuh) that depend on
// its number of columns.
void add_warpgroup_instruction(std::vector<Constant>& constants, int columns);

// The refusal if a device has no wgmma.
Refusal warpgroup_refusal(const DeviceDescription& device);

// "128x128, 8x16 a thread, 128 threads"
std::string describe(const FragmentShape& shape);

// Padding in bytes between steps of the reduction in shared memory, so that a warp's reads have no
// bank conflicts (kernel_sources/conv/mma/fragments.cuh).
constexpr std::int64_t transposed_pad(std::int64_t element_bytes) {
  return element_bytes == 2 ? 16 : 32;
}
// Bytes from one row of `fragments` fragments (32 bytes of the reduction each) to the next, padded
// for the same reason.
constexpr std::int64_t fragments_pitch(std::int64_t fragments, std::int64_t element_bytes) {
  return fragments * 32 + (element_bytes < 8 ? 16 : (fragments + 1) % 2 * 32);
}

// Whether `blocks` blocks of `bytes` bytes of shared memory each fit on a multiprocessor, and the
// device allows a block so many bytes.
bool fits_shared_memory(std::int64_t bytes, int blocks, const DeviceDescription& device);

// Adds the constants of kernels that read fragments: whether f32 is 3xTF32, and how elements are
// split for sums of at least `reduction` products. rows_ahead: operand A is split one fragment
// early, as operand B is, because registers allow it.
void add_split_constants(std::vector<Constant>& constants, bool split, std::int64_t reduction,
                         bool rows_ahead = false);

// The number of products between two promotions of a 3xTF32 sum of `reduction` products.
std::int64_t promotion_run(std::int64_t reduction);

// Adds the constants for how often a gather's accumulators are promoted (PROMOTE, PROMOTE_LOCAL).
// reduction: products of a sum; accumulated: products of it that one block adds up; step_fragments:
// fragments (32 bytes) of a step.
void add_promotion_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             std::int64_t reduction, std::int64_t accumulated,
                             std::int64_t step_fragments);

// Whether the problem is computed in 3xTF32.
bool is_split(const ConvolutionProblem& problem);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const GemmTile& tile);

}  // namespace kiln
