// Estimates of products by wgmma whose operand A is read into registers, a fragment at a time.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
double warpgroup_fragment_seconds(const FragmentWork& work, int parts,
                                  const DeviceDescription& device) {
  const WgmmaFragmentConstants& fitted = fitted_of(device).wgmma_fragments;
  const SharedConstants& common = fitted_of(device).shared;
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double warps = shape.threads() / warp;
  // left: wgmma instructions, each with 64 lines of operand A. right: lines of operand B, which
  // 3xTF32 splits in shared memory.
  const double left = (shape.columns_left ? shape.n : shape.m) / 64.0;
  const double right = shape.columns_left ? shape.m : shape.n;
  const double products = sums * 8 * (work.split ? 3 : 1) / warpgroup_rate;
  const WgmmaFragmentConstants::Fragment& cost = work.left_matrix_steps > 0 ? fitted.split_matrices
                                                 : work.split               ? fitted.split
                                                                            : fitted.whole;
  const double fragment =
      fitted.products_share * products +
      (cost.left_clocks + fitted.conflict_clocks * (work.column_accesses - 1)) * left +
      (work.right_stays ? 0 : cost.right_clocks * right);
  const double fragments = std::ceil(work.fragments / parts);
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const auto block = [&](double resident) {
    const double under_way = resident * shape.slices * left * warps_of_warpgroup;
    const double gathered =
        work.copy_bytes == 2 ? fitted.gathered_pairs_share : fitted.gathered_copies_share;
    const double copies = work.copies * (work.scalar_copies ? gathered : 1) +
                          work.row_copies * (work.row_words_beside ? fitted.row_word_copies_share
                                                                   : common.row_copies_share) +
                          work.word_copies * fitted.word_copies_share;
    double clocks = fitted.first_clocks +
                    fragments * resident * fragment * (1 + fitted.lone_warps / under_way) +
                    resident * copies / parts / warp * fitted.copies_clocks +
                    work.stages / parts * fitted.stage_clocks +
                    resident * work.left_matrix_steps / parts * fitted.step_clocks +
                    resident * work.moves * warps * fitted.move_clocks / issue_width;
    clocks += resident * (work.scattered ? common.scattered_store_clocks : fitted.store_clocks) *
              work.results / (tiles * warp * parts);
    if (parts * shape.slices > 1)
      clocks +=
          std::ceil(sums * shape.slices * 4 / work.shared_memory) * fitted.exchange_clocks +
          resident * fitted.exchanged_sums_clocks * std::log2(parts * shape.slices) * sums / warp;
    return clocks;
  };
  const double thread_sums = sums / shape.slice_threads() * (work.split ? 2 : 1);
  const int resident =
      std::max(std::min(shape.min_blocks, blocks_by_memory(work.shared_memory, device)),
               resident_blocks(work.shared_memory, thread_sums, warps, device));
  const double clocks = rounds_clocks(tiles * parts, parts, resident, device, block);
  return clocks_to_seconds(fitted.start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
