// Products by wgmma that read both operands from shared memory.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// How it was fitted: README.md.

// A step over its products' own clocks; clocks for each byte copied, of the filter and of a halo;
// fixed clocks of a step, and more where a single warpgroup is alone, because nobody multiplies
// while it waits; clocks before the first step; for 32 results; to exchange 32 sums, for each
// doubling of the split count; of a launch, besides what every launch costs. Blocks of clusters run
// alone on their multiprocessors, except those of one warpgroup.
constexpr double warpgroup_share_of_products = 0.969, filter_byte_clocks = 0.00472,
                 halo_byte_clocks = 0.0421, warpgroup_step_clocks = 100,
                 lone_warpgroup_step_clocks = 140, warpgroup_first_clocks = 6000,
                 warpgroup_store_clocks = 6.63, warpgroup_exchanged_clocks = 13.6,
                 warpgroup_start_clocks = 1700;
// The same where elements are gathered one by one: clocks of an element; of a step; of a group of
// steps; before the first one, fixed and for each element of a thread; of a result. The effect of
// numbers of warps other than eight on gathering and storing. 3xTF32: a step's products relative to
// one product.
struct Gathering {
  double element, element_warps, step, group, first, first_element, result, result_warps,
      products = 1;
};
constexpr Gathering gathered_16_bits = {0.182, 0.07, 60.9, 684, 3990, 41.1, 22.7, 0.648},
                    gathered_f32 = {0.111, -0.488, 60.9, 684, 3990, 41.1, 22.7, 0.648},
                    gathered_split = {0.288, -0.137, 93.6, 594, 8990, 0, 72.4, 0.727, 2.7};
// The cost of an element of a halo relative to one of the filter, and what is added where few
// pixels are contiguous.
constexpr double gathered_halo_share = 0.893, gathered_short_run = 5.67;
// Bytes a clock that L2 delivers through L1 to each multiprocessor while all of them load.
constexpr double shared_cache_bytes_in_l1 = 19.9;

// Clocks of a tile besides its products.
struct BesideProducts {
  double copies, steps, first;
  double result;  // of a warp
};

BesideProducts copying_clocks(const WarpgroupWork& work, int parts) {
  return {work.halo_bytes * halo_byte_clocks + work.filter_bytes * filter_byte_clocks,
          std::ceil(work.steps / parts) * warpgroup_step_clocks, warpgroup_first_clocks,
          warpgroup_store_clocks};
}

const Gathering& gathering_of(const WarpgroupWork& work) {
  return work.split                     ? gathered_split
         : work.type == KILN_DATA_FLOAT ? gathered_f32
                                        : gathered_16_bits;
}

// Nothing overlaps with the gathering of the first group.
BesideProducts gathering_clocks(const WarpgroupWork& work, int parts) {
  const Gathering& cost = gathering_of(work);
  const auto element = static_cast<double>(size_of(work.type));
  const auto of_warps = [&](double share) {
    constexpr double warps = 8;
    return 1 + share * (warps / (work.threads / warp) - 1);
  };
  const double halo = gathered_halo_share * (1 + gathered_short_run / work.halo_run);
  const double gathered = (work.filter_bytes + work.halo_bytes * halo) / element;
  const double first = (work.filter_bytes / work.groups + work.halo_bytes / work.halos) / element;
  return {gathered * cost.element * of_warps(cost.element_warps),
          std::ceil(work.steps / parts) * cost.step + work.groups / parts * cost.group,
          cost.first + first / work.threads * cost.first_element,
          cost.result * of_warps(cost.result_warps)};
}

}  // namespace

double warpgroup_seconds(const WarpgroupWork& work, int parts, const DeviceDescription& device) {
  const double sums = static_cast<double>(work.m) * work.n;
  // 32 bytes of the reduction: 8 f32, or 16 elements of 16 bits at twice the rate.
  const double step = work.step_fragments * sums * 8 / warpgroup_rate *
                      warpgroup_share_of_products * gathering_of(work).products;
  const double products = std::ceil(work.steps / parts) * step;
  const bool gathers = work.groups > 0;
  const BesideProducts beside =
      gathers ? gathering_clocks(work, parts) : copying_clocks(work, parts);
  const double bytes = gathers ? 0 : (work.halo_bytes + work.filter_bytes) / parts;
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double blocks = tiles * parts;
  const double busy = std::min<double>(blocks, device.multiprocessors);
  const double cache_bytes =
      std::min(most_cache_bytes, shared_cache_bytes_in_l1 * device.multiprocessors / busy);
  const auto block = [&](double resident) {
    const bool lone = !gathers && resident * work.threads / warp <= warps_of_warpgroup;
    const double waits = lone ? std::ceil(work.steps / parts) * lone_warpgroup_step_clocks : 0;
    const double computed = resident * (products + beside.copies / parts) + beside.steps + waits;
    double clocks = beside.first + std::max(computed, resident * bytes / cache_bytes);
    clocks += resident * beside.result * work.results / (blocks * warp);
    if (parts > 1) clocks += resident * warpgroup_exchanged_clocks * std::log2(parts) * sums / warp;
    return clocks;
  };
  const double warps = work.threads / warp;
  const double thread_sums = sums / work.threads * (work.split ? 2 : 1);
  const bool alone = parts > 1 && (gathers || warps > warps_of_warpgroup);
  const int resident = alone ? 1 : resident_blocks(work.shared_memory, thread_sums, warps, device);
  const double clocks = rounds_clocks(blocks, parts, resident, device, block);
  return clocks_to_seconds(warpgroup_start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
