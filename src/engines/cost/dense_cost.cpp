#include "engines/cost/dense_cost.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cost/chips.hpp"

namespace kiln {
namespace {

// Fitted to 1300 times of 81 layers on an H100 (rms error 14%; the least estimate takes 1.02 times
// the best's time, 1.16 times at worst).

// Clocks of a multiprocessor. Products of 16 bits that its tensor cores do in one, how much longer
// a step takes than these, and what each takes besides; what a row of at most 128 bytes takes from
// L2 to shared memory where each multiprocessor has its own, where all have the same, and where
// these are more than stays at hand (a row of 32 bytes takes no less than one of 128: groups of 16
// channels in tiles of 256 pixels take 570 clocks a step); the first operands of a block; 64 rows
// of 64 pixels on their way out, by a warpgroup.
constexpr double products_a_clock = 2048, step_share = 1.28, step_clocks = 30,
                 own_line_clocks = 2.4, shared_line_clocks = 1.83, large_filter_line_clocks = 3.93,
                 first_clocks = 710, slab_clocks = 695;
constexpr double large_filter_bytes = 8e6;
// Products and memory overlap but for this share of the shorter one. Some operands are in L2 yet.
constexpr double apart = 0.47, memory_share = 0.85;

// Of the block that has most to do.
double busiest_block(const DenseWork& work, double step, double tile, int blocks) {
  double most = 0;
  for (int block = 0; block < blocks; ++block) {
    double clocks = 0;
    std::int64_t first = 0;  // tile of a phase
    for (const DenseWork::Phase& phase : work.phases) {
      const auto before = [&](std::int64_t number) {  // tiles of the block below that number
        return (number - block + blocks - 1) / blocks;
      };
      const std::int64_t tiles = std::max<std::int64_t>(before(first + phase.tiles), 0) -
                                 std::max<std::int64_t>(before(first), 0);
      clocks += static_cast<double>(tiles) * (static_cast<double>(phase.steps) * step + tile);
      first += phase.tiles;
    }
    most = std::max(most, clocks);
  }
  return most;
}

}  // namespace

double dense_seconds(const DenseWork& work, const DeviceDescription& device) {
  // A line of f32 takes as long as one of 16 bits: half the products, at half the rate.
  const double step_channels = 64 * work.line_bytes / 128.0;
  constexpr double slab = 64.0 * 64;
  const double sums = static_cast<double>(work.pixels) * work.rows;
  const double filter_line_clocks =
      work.filter_bytes < large_filter_bytes ? shared_line_clocks : large_filter_line_clocks;
  const double step =
      step_clocks + std::max(sums * step_channels / products_a_clock * step_share,
                             work.pixels * own_line_clocks + work.rows * filter_line_clocks);
  // Of 7 layers in NCHW, on an H200.
  constexpr double half_lines_share = 1.7;
  // By threads: two accesses of a warp for each, and no other tile meanwhile. Single elements that
  // lie apart, as those of a phase do, were seen to take three times as long.
  const double access_clocks = work.phases.size() > 1 ? 13 : 4;
  const double by_threads =
      work.store_bytes > 0 ? slab * 2 / work.store_bytes / 32 * 2 * access_clocks : 0;
  const double results = (slab_clocks * (work.half_lines ? half_lines_share : 1) + by_threads) *
                         sums / slab / work.warpgroups;
  const double clocks = first_clocks + busiest_block(work, step, results, device.multiprocessors);
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(clocks, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes * memory_share, device) - launch;
  return launch + std::max(computed, moved) + apart * std::min(computed, moved);
}

double dense_halo_seconds(const DenseHaloWork& work, const DeviceDescription& device) {
  // Fitted to 40 times of 15 layers on an H100. Of a step, against its products, and besides; the
  // last results of a block, which nothing hides.
  constexpr double halo_step_share = 0.97, halo_step_clocks = 148, last_clocks = 4000;
  const double step =
      work.pixels * 64.0 * 64 * (work.line_bytes / 128.0) / products_a_clock * halo_step_share +
      halo_step_clocks;
  const double rounds = std::ceil(static_cast<double>(work.tiles) / device.multiprocessors);
  const double clocks =
      first_clocks + rounds * static_cast<double>(work.steps) * step + last_clocks;
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(clocks, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes * memory_share, device) - launch;
  return launch + std::max(computed, moved) + apart / 3 * std::min(computed, moved);
}

double dense_wgrad_second_seconds(double groups, double bytes) {
  // The launch, which the first step's end hides in part; a thread's loads, 32 at a time; what all
  // leave and read, in L2.
  constexpr double launch = 2.8e-6, load = 4e-8, l2_bytes_a_second = 8.9e12;
  return launch + load * groups + 2 * bytes / l2_bytes_a_second;
}

double dense_wgrad_seconds(const DenseWgradWork& work, const DeviceDescription& device) {
  // 16 bits: fitted to 280 measurements of 15 layers on an H200, root mean square error 10%, where
  // the choice takes 1.01 times the best's time, 1.08 times at worst. f32: to those of 16 bits on
  // an H100, before.
  // Clocks: how much longer a step takes than its products, and besides; a copy of 64 channels of a
  // step's pixels, which one thread asks for; bytes a clock that all have from L2, for each; a line
  // where a multiprocessor waits for them alone. The exchange of a cluster's sums, and for each 64
  // x 64 of them. A round's start, where nothing hides it, and a block's results, for each 64 x 64:
  // stored by threads, and, of a persistent block, through slabs.
  struct Fitted {
    double step_share, besides, ask_clocks, l2_bytes, line_clocks, exchange_wait, exchange_clocks,
        start_clocks, result_clocks, slab_clocks;
  };
  constexpr Fitted of_half{1.29, 0, 160, 60, 2.17, 10100, 0, 8560, 880, 560},
      of_single{1.32, 21, 195, 35.7, 2, 7550, 845, 0, 0, 0};
  const Fitted& fitted = work.element == 2 ? of_half : of_single;
  // Of shared memory, a clock; of three products: sums that are promoted a clock, how often, and
  // how long the tensor cores wait, by count.
  constexpr double shared_bytes = 128, adders = 128, promoted_pixels = 64, promoted_wait = 100;
  const double sums = static_cast<double>(work.filters) * work.columns;
  const double size = work.element / 2.0;  // against 16 bits
  const double slabs = (work.filters + work.columns) / 64.0 * size;
  // Clusters of 4 and more leave some multiprocessors without one.
  const double filled = work.cluster >= 4 ? 0.91 : 1;
  const double places =
      std::max(std::floor(device.multiprocessors * filled / work.cluster), 1.0) * work.cluster;
  const double lines = slabs * work.step_pixels, products = work.split ? 3 : 1;
  // f32 in shared memory, by pixel: its way in, x read and turned, dy read by lanes, and x by each
  // 64 filters' products.
  const double shared =
      work.turned
          ? work.step_pixels * 4.0 / shared_bytes *
                (work.filters * 2 + work.columns * (products + 2 + work.filters / 64.0 * products))
          : 0;
  const double askers = work.turned ? 2 : 1;
  const double step =
      std::max(
          {sums * work.step_pixels / products_a_clock * size * products * fitted.step_share,
           shared * fitted.step_share,
           lines * 128 * std::min(work.blocks, places) / (fitted.l2_bytes * device.multiprocessors),
           slabs * fitted.ask_clocks / askers, lines * fitted.line_clocks}) +
      fitted.besides +
      (work.split ? work.step_pixels / promoted_pixels * (sums / adders + promoted_wait) : 0);
  double block = step * work.steps;
  if (work.cluster > 1) block += fitted.exchange_wait + fitted.exchange_clocks * sums / (64 * 64);
  const double rounds = std::ceil(work.blocks / places);
  const double slabs_of_results = sums / (64 * 64);
  if (work.persistent)
    block += fitted.slab_clocks * slabs_of_results;
  else
    block += (rounds - 1) / rounds * fitted.start_clocks;
  if (!work.persistent && work.cluster == 1 && work.groups == 1)
    block += fitted.result_clocks * slabs_of_results;
  return clocks_to_seconds(rounds * block, work.bytes, device) +
         (work.groups > 1
              ? dense_wgrad_second_seconds(work.groups, work.blocks / work.cluster * sums * 4)
              : 0);
}

}  // namespace kiln
