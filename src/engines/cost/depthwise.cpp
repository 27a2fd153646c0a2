// Estimates of depthwise convolutions: threads that slide along rows or walk down them, halos that
// the copy engine loads, and Toeplitz products.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/depthwise_cost.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
double depthwise_fma_seconds(const SlidingWork& work, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  const DepthwiseConstants& fitted = fitted_of(device).depthwise;
  constexpr int resident = 2;
  const double warps = work.threads / warp;
  const bool f64 = work.type == KILN_DATA_DOUBLE, narrow = size_of(work.type) == 2;
  // If the pixels of a row are not contiguous, each takes a whole sector of memory.
  constexpr double sector = 32;
  const double bytes =
      work.bytes * (work.channels_inner ? sector / static_cast<double>(size_of(work.type)) : 1);
  if (work.steps == 1) {
    // With channels innermost, every copy is of one element from another line of memory.
    const double copies =
        work.copies * (work.channels_inner ? fitted.sliding_channels_inner_share : 1);
    const double thread =
        (fitted.thread_instructions + copies * fitted.copy_instructions) / fitted.issue_share +
        work.products * chip.f32 / (f64 ? chip.f64 : chip.f32) / fitted.product_share;
    const double clocks =
        std::max(work.blocks / device.multiprocessors, 1.0) * warps * thread / issue_width;
    // Each such copy waits for its line as well, which blocks beside hide only where there are
    // many: of an H200's times of single images.
    constexpr double line_clocks = 200;
    const double waits = work.channels_inner ? work.copies * line_clocks : 0;
    return clocks_to_seconds(fitted.sliding_first_clocks + waits + clocks,
                             bytes / fitted.memory_share, device);
  }
  const double lanes = f64 ? chip.f64 : chip.f32;
  const double once = fitted.sliding_first_clocks + work.steps * fitted.sliding_step_clocks +
                      work.products * work.threads / lanes / fitted.sliding_share *
                          (work.channels_inner ? fitted.sliding_channels_inner_share : 1) *
                          (narrow ? fitted.sliding_narrow_share : 1);
  const auto block = [&](double beside) {
    return beside * once * (1 + fitted.sliding_waiting_warps / (beside * warps));
  };
  return clocks_to_seconds(rounds_clocks(work.blocks, 1, resident, device, block), bytes, device);
}

double depthwise_halo_seconds(const DepthwiseHaloWork& work, const DeviceDescription& device) {
  const DepthwiseConstants& fitted = fitted_of(device).depthwise;
  constexpr double schedulers = 4;
  const double issued = work.products + work.places * fitted.halo_place_instructions +
                        work.weights * fitted.halo_weight_instructions +
                        work.results * fitted.halo_result_instructions;
  const double beside =
      std::clamp(std::ceil(work.blocks / device.multiprocessors), 1.0, work.resident);
  // A scheduler gets whole warps, and each block's first warp goes to another scheduler, so the
  // mean of the even and the rounded-up number is taken.
  const double warps = beside * work.warps / schedulers, dealt = (warps + std::ceil(warps)) / 2;
  const double tile = issued * dealt * (1 + fitted.halo_waiting_warps / dealt) / fitted.halo_share;
  const double rounds = std::ceil(work.blocks / (beside * device.multiprocessors));
  const double clocks = fitted.halo_first_clocks + issued * fitted.halo_first_instruction_clocks +
                        rounds * work.tiles * (tile + fitted.halo_tile_clocks);
  return clocks_to_seconds(clocks, work.bytes * work.lines_share / fitted.halo_memory_share,
                           device);
}

namespace {

// Of the kernels that walk down rows: instructions of a thread for a pixel that it reads, the share
// of issue slots that many warps reach, how many warps of a scheduler wait beside them, and the
// share of memory's rate. Fitted to an H200's 54 times of 9 problems in 16 bits (forward, and data
// gradients of stride 1): rms error 11%, the choice takes 1.04 times the best, 1.12 at worst.
constexpr double place_instructions = 5, issue_share = 0.65, waiting_warps = 1, memory_share = 0.75;

// Clocks of a multiprocessor for so many instructions of warps, of which it holds some at once.
double issue_clocks(double instructions, double warps) {
  constexpr double schedulers = 4;
  return instructions / issue_width / issue_share * (1 + waiting_warps * schedulers / warps);
}

}  // namespace

double depthwise_rows_seconds(const DepthwiseRowsWork& work, const DeviceDescription& device) {
  constexpr double result_instructions = 4, result_channel = 2;
  constexpr double filter_instructions = 8, thread_instructions = 20;
  constexpr double row_clocks = 100, first_clocks = 1500;  // that rows wait for memory
  const double issued = work.channels * (work.products + work.results * result_channel +
                                         work.weights + (work.converted ? work.places : 0)) +
                        work.places * place_instructions + work.results * result_instructions +
                        work.filter * filter_instructions + thread_instructions;
  const double busiest = std::ceil(work.blocks / device.multiprocessors);
  const double rounds = std::ceil(busiest / work.resident);
  const double clocks = std::max(
      issue_clocks(busiest * work.warps * issued, work.warps * std::min(busiest, work.resident)),
      rounds * (first_clocks + work.rows * row_clocks));
  return clocks_to_seconds(clocks, work.bytes / memory_share, device);
}

double wgrad_depthwise_rows_seconds(const WgradDepthwiseRowsWork& work,
                                    const DeviceDescription& device) {
  // Counted in the machine code, not measured.
  constexpr double unit_instructions = 50, first_clocks = 2500, tap_clocks = 100, row_clocks = 400;
  constexpr double cache_share = 2;  // how much faster L2 is than memory
  const double read = work.places + work.gradients;
  const double issued = work.channels * (work.gradients * work.taps + (work.converted ? read : 0)) +
                        read * place_instructions + unit_instructions;
  const double busiest = std::ceil(work.blocks / device.multiprocessors);
  const double rounds = std::ceil(busiest / work.resident);
  const double turns = busiest * work.warps * work.units;
  const double clocks =
      std::max({issue_clocks(turns * issued, work.warps * std::min(busiest, work.resident)),
                turns * read * work.lines, rounds * work.units * work.rows * row_clocks}) +
      first_clocks + work.taps * tap_clocks;
  return clocks_to_seconds(
      clocks, std::max(work.bytes, work.cache_bytes / cache_share) / memory_share, device);
}

double toeplitz_seconds(const ToeplitzWork& work, const DeviceDescription& device) {
  const DepthwiseConstants& fitted = fitted_of(device).depthwise;
  constexpr double warps = 2;  // of a scheduler
  const double tile = work.products * warps * product_clocks / fitted.toeplitz_share +
                      work.halo_pixels * fitted.toeplitz_pixel_clocks +
                      work.results * fitted.toeplitz_result_clocks +
                      work.boxes * fitted.toeplitz_box_clocks + fitted.toeplitz_tile_clocks;
  return clocks_to_seconds(work.weights * fitted.toeplitz_weight_clocks + work.tiles * tile,
                           work.bytes / fitted.toeplitz_memory_share, device);
}

}  // namespace kiln
