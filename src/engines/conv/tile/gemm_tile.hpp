// The tiles of the engines that multiply matrices.
#pragma once

#include <cstdint>
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
  int m, n, k;             // K of one slice's step
  int thread_m, thread_n;  // sums of one thread
  int stages;              // stages of the operands in shared memory
  int min_blocks;          // blocks that share a multiprocessor, which limits the registers
  int packs_from;  // compute capability below which that limit would spill, so that 1 block is
                   // asked for
  int slices = 1;  // slices of a block, which take turns at its steps

  // Tensor cores: elements along n that a lane reads at a time (at most 16 bytes); 0: FMA units.
  int mma_vector_n = 0;
  bool split = false;  // f32 in three products
  int promote = 0;     // stages between promotions; 0: only at the end

  bool mma() const { return mma_vector_n > 0; }

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};

// All tiles: on the FMA units, and on the tensor cores for sums of `reduction` products.
std::span<const GemmTile> fma_tiles(DataType type);
std::vector<GemmTile> mma_tiles(const ConvolutionProblem& problem, std::int64_t reduction);

// The refusal if tensor cores cannot or must not compute sums of `reduction` products.
std::optional<Refusal> mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                                   const DeviceDescription& device);

// The refusal for types that ldmatrix kernels do not take; and that together with mma_refusal().
std::optional<Refusal> matrices_refusal(const ConvolutionProblem& problem);
std::optional<Refusal> fragment_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                                        const DeviceDescription& device);

// Split counts that are offered. As many clusters of 8 run at once as of 7, and those of 9 to 15
// leave more of the chip idle.
inline constexpr int cluster_sizes[] = {1, 2, 3, 4, 5, 6, 8, 16};

// The split counts of a tile, up to `most`, that leave each block some of the `steps` of the
// reduction.
std::vector<int> parts_of(const DeviceDescription& device, double steps, int most);

// How the operands' tiles lie in shared memory: elements of compute_t in 16 bytes, and from one
// step of the reduction to the next. Rows are padded where lanes run along the reduction, so that 8
// steps of 4 elements fall into 32 banks; for the tensor cores always, by 32 bytes, so that 16
// bytes each of 4 steps and 2 columns do.
struct GemmStages {
  int vector, pitch_m, pitch_n;
  GemmStages(const GemmTile& tile, DataType type, bool m_lanes_on_k, bool n_lanes_on_k);
  std::uint32_t bytes(const GemmTile& tile, DataType type) const;
};

// The constants of tile and stages that gemm_tile.cuh, sum_registers.cuh and operand_mover.cuh ask
// for.
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
// The constants that tile_sums.cuh and sum_registers.cuh ask of such a tile. totals: promoted sums
// have registers of their own; run_m, run_n: rows and columns of a thread side by side.
void add_fragment_constants(std::vector<Constant>& constants, const FragmentShape& shape,
                            const ConvolutionProblem& problem, int run_m, int run_n = 2);

// The PTX names of a thread's accumulators (kernel_sources/cuda/sum_registers.cuh): left x right
// products of four each; type: "f32".
void add_sum_registers(std::vector<Constant>& constants, int left, int right, bool totals,
                       const char* type);

// What the text of a wgmma instruction (kernel_sources/cuda/wgmma.cuh) takes from its number of
// columns.
void add_warpgroup_instruction(std::vector<Constant>& constants, int columns);

// The refusal if a device has no wgmma.
std::optional<Refusal> warpgroup_refusal(const DeviceDescription& device);

// "128x128, 8x16 a thread, 128 threads"
std::string describe(const FragmentShape& shape);

// Padding in bytes between steps of the reduction in shared memory, so that what a warp reads at a
// time hits 32 banks (kernel_sources/conv/mma/fragments.cuh).
constexpr std::int64_t transposed_pad(std::int64_t element_bytes) {
  return element_bytes == 2 ? 16 : 32;
}
// Bytes from one row of so many fragments, of 32 bytes of the reduction side by side, to the next:
// with the same aim.
constexpr std::int64_t fragments_pitch(std::int64_t fragments, std::int64_t element_bytes) {
  return fragments * 32 + (element_bytes < 8 ? 16 : (fragments + 1) % 2 * 32);
}

// Whether so many blocks of so many bytes of shared memory fit on a multiprocessor, and one of them
// on the device at all.
bool fits_shared_memory(std::int64_t bytes, int blocks, const DeviceDescription& device);

// For kernels whose operands are fragments: whether f32 is 3xTF32, and how elements are split for
// sums of at least `reduction` products; rows_ahead: operand A is split as early as operand B,
// where registers allow.
void add_split_constants(std::vector<Constant>& constants, bool split, std::int64_t reduction,
                         bool rows_ahead = false);

// How many products of a 3xTF32 sum of `reduction` products are accumulated between promotions.
std::int64_t promotion_run(std::int64_t reduction);

// How often a gather's accumulators are promoted (PROMOTE, PROMOTE_LOCAL). reduction: products of a
// sum; accumulated: those that one block adds up; step_fragments: fragments (32 bytes) of a step.
void add_promotion_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             std::int64_t reduction, std::int64_t accumulated,
                             std::int64_t step_fragments);

// Whether the problem is computed in 3xTF32.
bool is_split(const ConvolutionProblem& problem);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const GemmTile& tile);

}  // namespace kiln
