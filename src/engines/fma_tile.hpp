// The tiles of the FMA engine, and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

struct FmaTile {
  int m, n, k;             // filters x pixels x reduction, of a thread block
  int thread_m, thread_n;  // sums of one thread; 256 threads
  int stages;              // tiles of the operands in shared memory
  int min_blocks;          // of a multiprocessor at once, which bounds the registers
  int packs_from;          // compute capability below which that bound would spill: 1 block instead
  // Share of its issue slots that go to FMAs in the main loop, measured on large problems.
  double efficiency;
};

// All tiles for a data type.
std::span<const FmaTile> fma_tiles(DataType type);

// The tile for a problem: by what the filters fill of it, times its efficiency. The batch size has
// no say, so that a new batch size needs no new kernel.
FmaTile choose_fma_tile(const ConvolutionProblem& problem);

// Into how many parts a cluster of blocks divides each tile's reduction, so that the blocks fill
// the device evenly; a launch argument, chosen for the batch at hand. 1 where there are no
// clusters.
int choose_reduction_parts(const ConvolutionProblem& problem, const FmaTile& tile,
                           std::int64_t tiles, const DeviceDescription& device);

// "128x128x8, 8x8 a thread, 256 threads, 3 stages"
std::string describe(const FmaTile& tile);

}  // namespace kiln
