// The tiles of the engines that multiply matrices, and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
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
  // Share of its issue slots that go to FMAs in the main loop, measured on large problems.
  double efficiency;
  int slices = 1;  // that take turns at a block's steps

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

// Why the tensor cores are not taken for sums of `reduction` products; "" if they are.
std::string mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                        const DeviceDescription& device);

// The tile for so many rows: by what they fill of it, times its efficiency. The batch size has no
// say, so that a new batch size needs no new kernel.
GemmTile choose_gemm_tile(std::span<const GemmTile> tiles, std::int64_t rows);

// Into how many parts a cluster of blocks divides each tile's reduction of `k_tiles` steps, so that
// the blocks of `tiles` tiles fill the device evenly; a launch argument, chosen for the batch at
// hand. 1 where there are no clusters. At most 8, or 16 where `large` clusters are wanted.
// `largest`: the work of the largest tile, against the mean; k_tiles is the mean.
int choose_reduction_parts(const GemmTile& tile, std::int64_t tiles, std::int64_t k_tiles,
                           const DeviceDescription& device, bool large = false, double largest = 1);

// The share of the device that works while the blocks of `tiles` tiles in `parts` parts each run.
double busy_share(const GemmTile& tile, std::int64_t tiles, int parts,
                  const DeviceDescription& device);

// How the operands' tiles lie in shared memory: elements of compute_t in 16 bytes, and from one
// step of the reduction to the next. Rows are padded where lanes run along the reduction, so that 8
// steps of 4 elements fall into 32 banks; for the tensor cores always, by 32 bytes, so that 16
// bytes each of 4 steps and 2 columns do.
struct GemmStages {
  int vector, pitch_m, pitch_n;
  GemmStages(const GemmTile& tile, DataType type, bool m_lanes_on_k, bool n_lanes_on_k);
  std::uint32_t bytes(const GemmTile& tile, DataType type) const;
};

// The constants of tile and stages that gemm_tile.cuh and operand_mover.cuh ask for.
void add_gemm_constants(std::vector<Constant>& constants, const GemmTile& tile,
                        const GemmStages& stages, DataType type, const DeviceDescription& device);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const GemmTile& tile);

}  // namespace kiln
