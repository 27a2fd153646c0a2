#include "engines/cost/dense_cost.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cost/chips.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
namespace {

// Multiply-adds of 16 bits that a multiprocessor's tensor cores do in a clock.
constexpr double products_a_clock = 2048;

// Clocks of the block with the most work. step, tile: clocks of a step, and of each tile besides.
double busiest_block(const DenseWork& work, double step, double tile, int blocks) {
  double most = 0;
  for (int block = 0; block < blocks; ++block) {
    double clocks = 0;
    std::int64_t first = 0;  // tile of a phase
    for (const DenseWork::Phase& phase : work.phases) {
      const auto before = [&](std::int64_t number) {  // the block's tiles numbered below `number`
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
  const DenseConstants& fitted = fitted_of(device).dense;
  // A line of f32 takes as long as one of 16 bits: it has half the products, at half the rate.
  const double step_channels = 64 * work.line_bytes / 128.0;
  constexpr double slab = 64.0 * 64;
  const double sums = static_cast<double>(work.pixels) * work.rows;
  const double multiplied_rows =
      work.pixels_in_words ? std::max<double>(work.rows, fitted.pixel_words_least_rows) : work.rows;
  const double words_clocks =
      work.pixels_in_words ? work.pixels / 64.0 / work.warpgroups * fitted.pixel_words_clocks : 0;
  const double filter_line_clocks = work.filter_bytes < fitted.large_filter_bytes
                                        ? fitted.shared_line_clocks
                                        : fitted.large_filter_line_clocks;
  const double step =
      fitted.step_clocks + words_clocks +
      std::max(work.pixels * multiplied_rows * step_channels / products_a_clock * fitted.step_share,
               work.pixels * fitted.own_line_clocks + work.rows * filter_line_clocks);
  const double access_clocks =
      work.phases.size() > 1 ? fitted.phase_access_clocks : fitted.access_clocks;
  const double by_threads =
      work.store_bytes > 0 ? slab * 2 / work.store_bytes / 32 * 2 * access_clocks : 0;
  const double results =
      (fitted.slab_clocks * (work.half_lines ? fitted.half_lines_share : 1) + by_threads) * sums /
      slab / work.warpgroups;
  const double clocks =
      fitted.first_clocks + busiest_block(work, step, results, device.multiprocessors);
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(clocks, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes * fitted.memory_share, device) - launch;
  return launch + std::max(computed, moved) + fitted.apart_share * std::min(computed, moved);
}

double dense_halo_seconds(const DenseHaloWork& work, const DeviceDescription& device) {
  const DenseConstants& fitted = fitted_of(device).dense;
  const double step = work.pixels * 64.0 * 64 * (work.line_bytes / 128.0) / products_a_clock *
                          fitted.halo_step_share +
                      fitted.halo_step_clocks;
  const double rounds = std::ceil(static_cast<double>(work.tiles) / device.multiprocessors);
  const double clocks = fitted.first_clocks + rounds * static_cast<double>(work.steps) * step +
                        fitted.halo_last_clocks;
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(clocks, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes * fitted.memory_share, device) - launch;
  return launch + std::max(computed, moved) + fitted.halo_apart_share * std::min(computed, moved);
}

double single_results_seconds(double results, const DeviceDescription& device) {
  // L2 bounds them, however few multiprocessors store.
  const double clocks =
      fitted_of(device).dense_wgrad.single_clocks * results / device.multiprocessors;
  return clocks_to_seconds(clocks, 0, device) - clocks_to_seconds(0, 0, device);
}

double dense_wgrad_second_seconds(const DenseWgradWork& work, const DeviceDescription& device) {
  // By an H200's times. Seconds of the launch, which the first step's end hides in part, and of a
  // thread's loads for one group; and the rate of L2, which all sums pass through twice.
  constexpr double launch_seconds = 2.8e-6, load_seconds = 4e-8, l2_bytes_a_second = 8.9e12;
  const double bytes = work.blocks / work.cluster * work.filters * work.columns * 4;
  return launch_seconds + load_seconds * work.groups + 2 * bytes / l2_bytes_a_second +
         single_results_seconds(work.singles, device);
}

double dense_wgrad_seconds(const DenseWgradWork& work, const DeviceDescription& device) {
  const DenseWgradConstants& common = fitted_of(device).dense_wgrad;
  const DenseWgradConstants::Costs& fitted = work.element == 2 ? common.of_16_bits : common.of_f32;
  // shared_bytes: of shared memory in a clock. For 3xTF32, adders: sums promoted in a clock;
  // promoted_pixels: pixels between two promotions.
  constexpr double shared_bytes = 128, adders = 128, promoted_pixels = 64;
  const double sums = static_cast<double>(work.filters) * work.columns;
  const double size = work.element / 2.0;  // relative to 16 bits
  const double slabs = (work.filters + work.columns) / 64.0 * size;
  const double places = cluster_places(work.cluster, 1, device);
  const double lines = slabs * work.step_pixels, products = work.split ? 3 : 1;
  // Accesses of shared memory for each pixel, if f32 is transposed: both operands are written, x is
  // read and written again, lanes read dy, and the products of every 64 filters read x.
  const double shared =
      work.turned
          ? work.step_pixels * 4.0 / shared_bytes *
                (work.filters * 2 + work.columns * (products + 2 + work.filters / 64.0 * products))
          : 0;
  const double askers = work.turned ? 2 : 1;
  const double step =
      std::max({sums * work.step_pixels / products_a_clock * size * products * fitted.step_share,
                shared * fitted.step_share,
                lines * 128 * std::min(work.blocks, places) /
                    (fitted.l2_bytes_a_clock * device.multiprocessors),
                slabs * fitted.ask_clocks / askers, lines * fitted.line_clocks}) +
      fitted.step_clocks +
      (work.split
           ? work.step_pixels / promoted_pixels * (sums / adders + common.promoted_wait_clocks)
           : 0);
  double block = step * work.steps;
  if (work.cluster > 1)
    block += fitted.exchange_clocks + fitted.exchanged_sums_clocks * sums / (64 * 64);
  const double rounds = std::ceil(work.blocks / places);
  const double slabs_of_results = sums / (64 * 64);
  if (work.persistent)
    block += fitted.slab_clocks * slabs_of_results;
  else
    block += (rounds - 1) / rounds * fitted.start_clocks;
  if (!work.persistent && work.cluster == 1 && work.groups == 1)
    block += fitted.result_clocks * slabs_of_results;
  return clocks_to_seconds(rounds * block, work.bytes, device) +
         (work.groups > 1 ? dense_wgrad_second_seconds(work, device)
                          : single_results_seconds(work.singles, device));
}

}  // namespace kiln
