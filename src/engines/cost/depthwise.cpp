// Depthwise convolutions on the FMA units: threads that slide along rows, and halos that the copy
// engine brings.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

// A thread that slides along a row: its rate relative to one multiply-add a clock and lane, from
// the f32 and f64 data gradients of the 2014 paper's L1; and the factor for NHWC, from the same
// layer.
constexpr double sliding_share = 0.75, sliding_waiting_warps = 2.4, sliding_channels_inner = 1.6,
                 sliding_narrow = 1.4, sliding_step_clocks = 320;

// Clocks of each block; not measured, but set so that this engine is not chosen for problems of a
// few microseconds.
constexpr double sliding_first_clocks = 2000;

// One channel a group (depthwise), from an H200's times of 3x3, with and without stride, and of 31
// taps of a row. Instructions: of a thread, of each of its copies. Shares: of the issue rate that
// they reach, of it that multiply-adds reach, which wait for nothing, and of memory's rate.
constexpr double depthwise_thread = 130, depthwise_copy = 40, depthwise_share = 0.5,
                 depthwise_product_share = 0.7, depthwise_memory_share = 0.6;

// From an H200's times of 3x3 to 7x7 in 16 bits. Instructions: for a pair of channels of a place
// (read and converted), a pair of weights from shared memory, a result. The share of the issue rate
// that so many warps of a scheduler reach. Clocks: of a block before its first tile, of an
// instruction that is fetched from memory for the first time, of each tile's barrier and first
// reads. The share of memory's rate that is reached.
constexpr double halo_place = 4, halo_weight = 2, halo_result = 8, halo_share = 0.92,
                 halo_waiting_warps = 0.35, halo_first_clocks = 3000, halo_first_instruction = 5,
                 halo_tile_clocks = 500, halo_memory_share = 0.8;

// Counted, not measured. Clocks of a multiprocessor: for a pixel of the halo, a pixel of the
// result, a box, a weight, a tile's barriers. The share of the tensor cores' rate that two warps a
// scheduler reach.
constexpr double toeplitz_pixel_clocks = 0.15, toeplitz_result_clocks = 1.3,
                 toeplitz_box_clocks = 1100, toeplitz_weight_clocks = 4,
                 toeplitz_tile_clocks = 1500, toeplitz_share = 0.8, toeplitz_memory_share = 0.6;

}  // namespace

double depthwise_fma_seconds(const SlidingWork& work, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  constexpr int resident = 2;
  const double warps = work.threads / warp;
  const bool f64 = work.type == KILN_DATA_DOUBLE, narrow = size_of(work.type) == 2;
  // Pixels that lie apart are a sector of memory each.
  constexpr double sector = 32;
  const double bytes =
      work.bytes * (work.channels_inner ? sector / static_cast<double>(size_of(work.type)) : 1);
  if (work.steps == 1) {
    // One element a copy, and another line of memory each.
    const double copies = work.copies * (work.channels_inner ? sliding_channels_inner : 1);
    const double thread =
        (depthwise_thread + copies * depthwise_copy) / depthwise_share +
        work.products * chip.f32 / (f64 ? chip.f64 : chip.f32) / depthwise_product_share;
    const double clocks =
        std::max(work.blocks / device.multiprocessors, 1.0) * warps * thread / issue_width;
    return clocks_to_seconds(sliding_first_clocks + clocks, bytes / depthwise_memory_share, device);
  }
  const double lanes = f64 ? chip.f64 : chip.f32;
  const double once = sliding_first_clocks + work.steps * sliding_step_clocks +
                      work.products * work.threads / lanes / sliding_share *
                          (work.channels_inner ? sliding_channels_inner : 1) *
                          (narrow ? sliding_narrow : 1);
  const auto block = [&](double beside) {
    return beside * once * (1 + sliding_waiting_warps / (beside * warps));
  };
  return clocks_to_seconds(rounds_clocks(work.blocks, 1, resident, device, block), bytes, device);
}

double depthwise_halo_seconds(const DepthwiseHaloWork& work, const DeviceDescription& device) {
  constexpr double schedulers = 4;
  const double issued = work.products + work.places * halo_place + work.weights * halo_weight +
                        work.results * halo_result;
  const double beside =
      std::clamp(std::ceil(work.blocks / device.multiprocessors), 1.0, work.resident);
  // Whole warps go to schedulers, and each block begins at another scheduler.
  const double warps = beside * work.warps / schedulers, dealt = (warps + std::ceil(warps)) / 2;
  const double tile = issued * dealt * (1 + halo_waiting_warps / dealt) / halo_share;
  const double rounds = std::ceil(work.blocks / (beside * device.multiprocessors));
  const double clocks = halo_first_clocks + issued * halo_first_instruction +
                        rounds * work.tiles * (tile + halo_tile_clocks);
  return clocks_to_seconds(clocks, work.bytes * work.lines_share / halo_memory_share, device);
}

double toeplitz_seconds(const ToeplitzWork& work, const DeviceDescription& device) {
  constexpr double warps = 2;  // of a scheduler
  const double tile = work.products * warps * product_clocks / toeplitz_share +
                      work.halo_pixels * toeplitz_pixel_clocks +
                      work.results * toeplitz_result_clocks + work.boxes * toeplitz_box_clocks +
                      toeplitz_tile_clocks;
  return clocks_to_seconds(work.weights * toeplitz_weight_clocks + work.tiles * tile,
                           work.bytes / toeplitz_memory_share, device);
}

}  // namespace kiln
