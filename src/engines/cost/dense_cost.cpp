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
  // By count: 9 instructions for two results, by all four schedulers. By a prototype's times: the
  // exchange at the end of a block, and the step that joins blocks.
  constexpr double moments_of_a_result = 9.0 / 2 / 32 / 4, moments_clocks = 1700;
  constexpr double moments_step_seconds = 2e-6;
  const int blocks = work.blocks > 0 ? work.blocks : device.multiprocessors;
  const double clocks =
      fitted.first_clocks +
      busiest_block(work, step, results + (work.moments ? sums * moments_of_a_result : 0), blocks) +
      (work.moments ? moments_clocks : 0);
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(clocks, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes * fitted.memory_share, device) - launch;
  return launch + std::max(computed, moved) + fitted.apart_share * std::min(computed, moved) +
         (work.moments ? moments_step_seconds : 0);
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

double dense_planar_seconds(const DensePlanarWork& work, const DeviceDescription& device) {
  const DenseConstants& fitted = fitted_of(device).dense;
  // By count: wgmma reads operand A (64 rows) and operand B from shared memory, 128 bytes a clock,
  // so products of few columns wait for operand A.
  const double right = work.pixels_left ? work.rows : work.pixels,
               lefts = (work.pixels_left ? work.pixels : work.rows) / 64.0;
  const double products = work.step_products / 16 * lefts * std::max(right / 2, 16 + right / 4) *
                              fitted.planar_step_share *
                              (work.pixels_left ? fitted.planar_pixels_left_share : 1) +
                          fitted.step_clocks;
  const double filter_line_clocks = work.filter_bytes < fitted.large_filter_bytes
                                        ? fitted.shared_line_clocks
                                        : fitted.large_filter_line_clocks;
  const double filter = work.steps * work.filter_lines * filter_line_clocks;
  const double column = std::max(work.steps * products, filter);  // of the filter
  const double columns = work.columns * column;
  const double halo = work.halo_lines * (1 + work.edges) * fitted.planar_line_clocks;
  double turn = columns;  // from a loaded halo to the next one
  if (work.columns > 1) {
    constexpr double vector = 8;  // pixels; they are read once, and written for each other column
    const double shift =
        work.halo_lines * work.line / vector * work.columns * fitted.shifted_vector_clocks +
        fitted.shifted_halo_clocks;
    // Without spare slots, a halo is loaded once the products of its slot's column are done, and
    // shifted once all are done. With them, copies wait for fewer columns.
    turn =
        work.spare_halos == 0
            ? std::max(column, shift) + std::max(columns - column, halo)
            : std::max(columns, shift + std::max(work.columns - 1 - work.spare_halos, 0) * column);
  }
  turn = std::max(turn, halo + work.columns * filter);
  // Lines of results of less than 128 bytes: more slabs, each with its barriers.
  constexpr double slab = 64.0 * 64;
  const double results = fitted.slab_clocks * (work.line < 64 ? fitted.half_lines_share : 1) *
                         work.pixels * work.rows / slab / work.warpgroups;
  const double rounds = std::ceil(static_cast<double>(work.tiles) / device.multiprocessors);
  const double clocks =
      fitted.first_clocks + rounds * (work.halos * turn + results) + fitted.halo_last_clocks;
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
  const DenseWgradConstants& fitted = fitted_of(device).dense_wgrad;
  const double bytes = work.blocks / work.cluster * work.filters * work.columns * 4;
  return fitted.second_seconds + fitted.round_seconds * work.rounds_of_loads +
         2 * bytes / fitted.second_bytes_a_second + single_results_seconds(work.singles, device);
}

double dense_wgrad_seconds(const DenseWgradWork& work, const DeviceDescription& device) {
  const DenseWgradConstants& common = fitted_of(device).dense_wgrad;
  const DenseWgradConstants::Costs& fitted = work.element == 2 ? common.of_16_bits : common.of_f32;
  // shared_bytes: of shared memory in a clock. For 3xTF32, adders: sums promoted in a clock;
  // promoted_pixels: pixels between two promotions.
  constexpr double shared_bytes = 128, adders = 128, promoted_pixels = 64;
  const double sums = static_cast<double>(work.filters) * work.columns;
  const double size = work.element / 2.0;  // relative to 16 bits
  const double dy_slabs = work.filters / 64.0 * size, x_slabs = work.columns / 64.0 * size;
  const double places = cluster_places(work.cluster, 1, device);
  const double products = work.split ? 3 : 1;
  // Accesses of shared memory for each pixel, if f32 is transposed: both operands are written, x is
  // read and written again, lanes read dy, and the products of every 64 filters read x.
  const double shared =
      work.turned
          ? work.step_pixels * 4.0 / shared_bytes *
                (work.filters * 2 + work.columns * (products + 2 + work.filters / 64.0 * products))
          : 0;
  const double copies = (dy_slabs + x_slabs) * fitted.copy_clocks +
                        work.step_pixels * fitted.line_clocks *
                            (dy_slabs * (work.odd_dy ? fitted.odd_line_share : 1) +
                             x_slabs * (work.odd_x ? fitted.odd_line_share : 1));
  // Of `merged` neighbouring blocks, whose tiles are first of one column, those of a row read the
  // same dy, and those of a column the same x.
  const double merged = work.cluster > 1 ? fitted.merged_in_clusters : fitted.merged;
  const double same_dy =
      std::max(std::min(work.column_tiles, merged / std::min(work.row_tiles, merged)), 1.0);
  const double same_x = std::min(work.row_tiles * work.tap_tiles, merged);
  const double own_lines =
      work.step_pixels * (dy_slabs * (work.odd_dy ? fitted.odd_l2_share : 1) / same_dy +
                          x_slabs * (work.odd_x ? fitted.odd_l2_share : 1) / same_x);
  const double step =
      std::max({sums * work.step_pixels / products_a_clock * size * products * fitted.step_share,
                shared * fitted.step_share, copies,
                own_lines * 128 * std::min(work.blocks, places) /
                    (fitted.l2_bytes_a_clock * device.multiprocessors)}) +
      fitted.step_clocks +
      (work.split
           ? work.step_pixels / promoted_pixels * (sums / adders + common.promoted_wait_clocks)
           : 0);
  const double rounds = std::ceil(work.blocks / places);
  const double slabs_of_sums = sums / (64 * 64);
  double beside = fitted.first_clocks;  // clocks during which no operands come
  if (work.persistent)
    beside += rounds * fitted.slab_clocks * slabs_of_sums;
  else
    beside += (rounds - 1) * fitted.start_clocks;
  if (work.cluster > 1)
    beside += rounds * (fitted.exchange_clocks + fitted.exchanged_sums_clocks * slabs_of_sums);
  else if (work.groups == 1 && !work.persistent)
    beside += rounds * fitted.result_clocks * slabs_of_sums;
  if (work.groups > 1) beside += fitted.left_sums_clocks * slabs_of_sums / work.cluster;
  const double launch = clocks_to_seconds(0, 0, device);
  const double computed = clocks_to_seconds(rounds * work.steps * step, 0, device) - launch;
  const double moved = clocks_to_seconds(0, work.bytes, device) - launch;
  // With few stages, copies wait for products; where memory bounds, that costs nothing.
  const double share = work.stages < 4 ? fitted.few_stages_share : 1;
  return clocks_to_seconds(beside, 0, device) + std::max(computed * share, moved) +
         fitted.apart_share * std::min(computed, moved) +
         (work.groups > 1 ? dense_wgrad_second_seconds(work, device)
                          : single_results_seconds(work.singles, device));
}

}  // namespace kiln
