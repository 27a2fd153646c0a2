// The tiles of the FMA engines, and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "problem/types.hpp"

namespace kiln {

// A matrix product's tile: rows M (filters, or channels of dx) x columns N (pixels; in wgrad, taps
// of channels) x reduction K.
struct FmaTile {
  int m, n, k;             // of a slice's step
  int thread_m, thread_n;  // sums of one thread
  int stages;              // steps of the operands in shared memory
  int min_blocks;          // of a multiprocessor at once, which bounds the registers
  int packs_from;          // compute capability below which that bound would spill: 1 block instead
  // Share of its issue slots that go to FMAs in the main loop, measured on large problems.
  double efficiency;
  int slices = 1;  // that take turns at a block's steps

  int slice_threads() const { return m / thread_m * (n / thread_n); }
  int threads() const { return slices * slice_threads(); }
};

// All tiles for a data type.
std::span<const FmaTile> fma_tiles(DataType type);

// The tile for so many rows: by what they fill of it, times its efficiency. The batch size has no
// say, so that a new batch size needs no new kernel.
FmaTile choose_fma_tile(DataType type, std::int64_t rows);

// Into how many parts a cluster of blocks divides each tile's reduction of `k_tiles` steps, so that
// the blocks of `tiles` tiles fill the device evenly; a launch argument, chosen for the batch at
// hand. 1 where there are no clusters. At most 8, or 16 where `large` clusters are wanted.
// `largest`: the work of the largest tile, against the mean; k_tiles is the mean.
int choose_reduction_parts(const FmaTile& tile, std::int64_t tiles, std::int64_t k_tiles,
                           const DeviceDescription& device, bool large = false, double largest = 1);

// The share of the device that works while the blocks of `tiles` tiles in `parts` parts each run.
double busy_share(const FmaTile& tile, std::int64_t tiles, int parts,
                  const DeviceDescription& device);

// How the operands' tiles lie in shared memory: elements of compute_t in 16 bytes, and from one
// step of the reduction to the next. Rows are padded where lanes run along the reduction, so that 8
// steps of 4 elements fall into 32 banks.
struct FmaStages {
  int vector, pitch_m, pitch_n;
  FmaStages(const FmaTile& tile, DataType type, bool m_lanes_on_k, bool n_lanes_on_k);
  std::uint32_t bytes(const FmaTile& tile, DataType type) const;
};

// The constants of tile and stages that fma_tile.cuh and operand_mover.cuh ask for.
void add_fma_constants(std::vector<Constant>& constants, const FmaTile& tile,
                       const FmaStages& stages, DataType type, const DeviceDescription& device);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const FmaTile& tile);

}  // namespace kiln
