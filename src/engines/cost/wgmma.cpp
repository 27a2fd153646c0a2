// Estimates of products by wgmma that read both operands from shared memory.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
namespace {

// Clocks of a tile besides its products: of its copies, of its steps, before the first step, and of
// a warp to store 32 results.
struct BesideProducts {
  double copies, steps, first;
  double result;
};

BesideProducts copying_clocks(const WarpgroupWork& work, int parts, const WgmmaConstants& fitted) {
  return {
      work.halo_bytes * fitted.halo_clocks_a_byte + work.filter_bytes * fitted.filter_clocks_a_byte,
      std::ceil(work.steps / parts) * fitted.step_clocks, fitted.first_clocks, fitted.store_clocks};
}

const WgmmaConstants::Gathering& gathering_of(const WarpgroupWork& work,
                                              const WgmmaConstants& fitted) {
  return work.split                     ? fitted.gathered_split
         : work.type == KILN_DATA_FLOAT ? fitted.gathered_f32
                                        : fitted.gathered_16_bits;
}

// The same if elements are gathered one by one. Nothing overlaps with gathering the first group.
BesideProducts gathering_clocks(const WarpgroupWork& work, int parts,
                                const WgmmaConstants& fitted) {
  const WgmmaConstants::Gathering& cost = gathering_of(work, fitted);
  const auto element = static_cast<double>(size_of(work.type));
  const auto of_warps = [&](double share) {
    constexpr double warps = 8;
    return 1 + share * (warps / (work.threads / warp) - 1);
  };
  const double halo =
      fitted.gathered_halo_share * (1 + fitted.gathered_short_run_share / work.halo_run);
  const double gathered = (work.filter_bytes + work.halo_bytes * halo) / element;
  const double first = (work.filter_bytes / work.groups + work.halo_bytes / work.halos) / element;
  return {
      gathered * cost.element_clocks * of_warps(cost.element_warps_share),
      std::ceil(work.steps / parts) * cost.step_clocks + work.groups / parts * cost.group_clocks,
      cost.first_clocks + first / work.threads * cost.first_element_clocks,
      cost.result_clocks * of_warps(cost.result_warps_share)};
}

}  // namespace

double warpgroup_seconds(const WarpgroupWork& work, int parts, const DeviceDescription& device) {
  const WgmmaConstants& fitted = fitted_of(device).wgmma;
  const double sums = static_cast<double>(work.m) * work.n;
  // A fragment is 32 bytes of the reduction: 8 elements of f32, or 16 of 16 bits at twice the rate.
  const double step = work.step_fragments * sums * 8 / warpgroup_rate * fitted.products_share *
                      gathering_of(work, fitted).products_share;
  const double products = std::ceil(work.steps / parts) * step;
  const bool gathers = work.groups > 0;
  const BesideProducts beside =
      gathers ? gathering_clocks(work, parts, fitted) : copying_clocks(work, parts, fitted);
  const double bytes = gathers ? 0 : (work.halo_bytes + work.filter_bytes) / parts;
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const double blocks = tiles * parts;
  const double busy = std::min<double>(blocks, device.multiprocessors);
  const double cache_bytes =
      std::min(most_cache_bytes, fitted.l2_bytes_a_clock * device.multiprocessors / busy);
  const auto block = [&](double resident) {
    const bool lone = !gathers && resident * work.threads / warp <= warps_of_warpgroup;
    const double waits = lone ? std::ceil(work.steps / parts) * fitted.lone_step_clocks : 0;
    const double computed = resident * (products + beside.copies / parts) + beside.steps + waits;
    double clocks = beside.first + std::max(computed, resident * bytes / cache_bytes);
    clocks += resident * beside.result * work.results / (blocks * warp);
    if (parts > 1)
      clocks += resident * fitted.exchanged_sums_clocks * std::log2(parts) * sums / warp;
    return clocks;
  };
  const double warps = work.threads / warp;
  const double thread_sums = sums / work.threads * (work.split ? 2 : 1);
  const bool alone = parts > 1 && (gathers || warps > warps_of_warpgroup);
  const int resident = alone ? 1 : resident_blocks(work.shared_memory, thread_sums, warps, device);
  const double clocks = rounds_clocks(blocks, parts, resident, device, block);
  return clocks_to_seconds(fitted.start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
