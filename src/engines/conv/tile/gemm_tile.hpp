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

// A matrix product's tile: rows M (filters, or channels of dx) x columns N (pixels; in wgrad, taps
// of channels) x reduction K.
struct GemmTile {
  int m, n, k;             // of a slice's step
  int thread_m, thread_n;  // sums of one thread
  int stages;              // steps of the operands in shared memory
  int min_blocks;          // of a multiprocessor at once, which bounds the registers
  int packs_from;          // compute capability below which that bound would spill: 1 block instead
  int slices = 1;          // that take turns at a block's steps

  // On the tensor cores: elements along n that a lane reads at a time, at most 16 bytes; 0: on the
  // FMA units.
  int mma_vector_n = 0;
  bool split = false;  // f32 in three products
  int promote = 0;     // stages between promotions of the sums; 0: at the end alone

  bool mma() const { return mma_vector_n > 0; }

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};

// All tiles: on the FMA units, and on the tensor cores for sums of `reduction` products.
std::span<const GemmTile> fma_tiles(DataType type);
std::vector<GemmTile> mma_tiles(const ConvolutionProblem& problem, std::int64_t reduction);

// Why the tensor cores are not taken for sums of `reduction` products, if they are not.
std::optional<Refusal> mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                                   const DeviceDescription& device);

// Why the operands' type is not for kernels that read them by ldmatrix; and that and the above.
std::optional<Refusal> matrices_refusal(const ConvolutionProblem& problem);
std::optional<Refusal> fragment_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                                        const DeviceDescription& device);

// Into how many parts a cluster of blocks may divide a tile's reduction. No more clusters of 7 run
// at once than of 8, and those of 9 to 15 leave more of the chip idle.
inline constexpr int cluster_sizes[] = {1, 2, 3, 4, 5, 6, 8, 16};

// Candidates of a tile: every number of parts, up to `most`, that leaves each of them some of the
// `steps` of the reduction.
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

// A tile whose operands registers take from shared memory a fragment at a time: a warp's part is
// 8 thread_m x 4 thread_n sums or, where the left operand of products is its pixels, 4 x 8
// threads'.
struct FragmentShape {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int min_blocks = 1;              // of a multiprocessor at once
  bool columns_left = false;
  int slices = 1;  // of a block, that take turns at the reduction

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};
// A tile of products by warpgroups, of which a thread has all rows of some columns.
constexpr FragmentShape warpgroup_shape(FragmentShape shape) {
  shape.thread_m = shape.m / 4;
  shape.columns_left = true;
  return shape;
}
// The constants that tile_sums.cuh and sum_registers.cuh ask of such a tile. totals: promoted sums
// have registers of their own; run_m, run_n: rows and columns of a thread side by side.
void add_fragment_constants(std::vector<Constant>& constants, const FragmentShape& shape,
                            const ConvolutionProblem& problem, int run_m, int run_n = 2);

// What PTX knows a thread's sums by (kernel_sources/cuda/sum_registers.cuh), of left x right
// products of four; type: "f32".
void add_sum_registers(std::vector<Constant>& constants, int left, int right, bool totals,
                       const char* type);

// What the text of the instruction by which a warpgroup multiplies (kernel_sources/cuda/wgmma.cuh)
// takes from the number of columns of a product.
void add_warpgroup_instruction(std::vector<Constant>& constants, int columns);

// Why a device has no products of warpgroups, if it has none.
std::optional<Refusal> warpgroup_refusal(const DeviceDescription& device);

// "128x128, 8x16 a thread, 128 threads"
std::string describe(const FragmentShape& shape);

// Bytes from one step of the reduction to the next in shared memory, beyond a tile's elements that
// lie side by side there: so that what a warp reads at a time falls into 32 banks
// (kernel_sources/conv/mma/fragments.cuh).
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

// Of kernels whose operands are fragments: whether f32 is three products, and how its elements are
// taken apart for sums of `reduction` of them, or more; rows_ahead: the left operand's as early as
// the right one's, for which there are registers.
void add_split_constants(std::vector<Constant>& constants, bool split, std::int64_t reduction,
                         bool rows_ahead = false);

// How many products of a sum of `reduction` f32 in three products come together before they are
// promoted.
std::int64_t promotion_run(std::int64_t reduction);

// How often a gather's sums are promoted (PROMOTE, PROMOTE_LOCAL). reduction: products of a sum;
// accumulated: those of them that the tensor cores add up; step_fragments: 32 bytes each, of a
// step.
void add_promotion_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             std::int64_t reduction, std::int64_t accumulated,
                             std::int64_t step_fragments);

// f32 in three products.
bool is_split(const ConvolutionProblem& problem);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const GemmTile& tile);

}  // namespace kiln
