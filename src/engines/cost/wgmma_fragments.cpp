// Products by wgmma whose operand A is read into registers, a fragment at a time.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// How it was fitted: README.md.

// Clocks of a fragment: for 64 lines of operand A, and for a line of operand B.
struct LeftFragment {
  double left, right;
};
constexpr LeftFragment left_split = {68.8, 1.93}, left_whole = {34.6, 1.08};
// The same where ldmatrix reads operand A, and of a step; a copy of a word relative to one of 16
// bytes.
constexpr LeftFragment left_split_matrices = {64.7, 0.933};
constexpr double left_step_clocks = 134, left_word_copies = 0.433;
// Clocks of each additional access where the words of a fragment hit the same banks.
constexpr double left_conflict_clocks = 20;
// Row copies of single words that overlap with the products of a filter gradient; from the 2014
// paper's L5 in f32 and TF32.
constexpr double left_row_word_copies = 0.17;
// A fragment also takes this share of its products' clocks. Few warps with products in flight do
// not hide each other's waits. Clocks: for 32 copies, and shares of that for scalar copies or
// pairs; of a stage; before the first one; for 32 results; for an exchange of sums, for each load
// of shared memory and for 32 sums, for each doubling of the split count; of a launch, besides what
// every launch costs.
constexpr double left_share_of_products = 0.33, left_lone_warps = 0.769, left_copies_clocks = 21.7,
                 left_gathered_copies = 0.176, left_gathered_pairs = 0.26, left_stage_clocks = 866,
                 left_first_clocks = 3440, left_store_clocks = 15.2, left_exchange_clocks = 1190,
                 left_exchanged_clocks = 7.74, left_start_clocks = 2130;
// Clocks for a warp to move a register, with nothing to overlap.
constexpr double move_clocks = 2.3;

}  // namespace

double warpgroup_fragment_seconds(const FragmentWork& work, int parts,
                                  const DeviceDescription& device) {
  const FragmentShape& shape = work.shape;
  const double sums = static_cast<double>(shape.m) * shape.n;
  const double warps = shape.threads() / warp;
  // Products for each 64 lines of operand A, and lines of operand B, which 3xTF32 splits in shared
  // memory.
  const double left = (shape.columns_left ? shape.n : shape.m) / 64.0;
  const double right = shape.columns_left ? shape.m : shape.n;
  const double products = sums * 8 * (work.split ? 3 : 1) / warpgroup_rate;
  const LeftFragment& cost = work.left_matrix_steps > 0 ? left_split_matrices
                             : work.split               ? left_split
                                                        : left_whole;
  const double fragment = left_share_of_products * products +
                          (cost.left + left_conflict_clocks * (work.column_accesses - 1)) * left +
                          (work.right_stays ? 0 : cost.right * right);
  const double fragments = std::ceil(work.fragments / parts);
  const auto tiles = static_cast<double>(std::max<std::int64_t>(work.tiles, 1));
  const auto block = [&](double resident) {
    const double under_way = resident * shape.slices * left * warps_of_warpgroup;
    const double gathered = work.copy_bytes == 2 ? left_gathered_pairs : left_gathered_copies;
    const double copies =
        work.copies * (work.scalar_copies ? gathered : 1) +
        work.row_copies * (work.row_words_beside ? left_row_word_copies : row_copies_share) +
        work.word_copies * left_word_copies;
    double clocks = left_first_clocks +
                    fragments * resident * fragment * (1 + left_lone_warps / under_way) +
                    resident * copies / parts / warp * left_copies_clocks +
                    work.stages / parts * left_stage_clocks +
                    resident * work.left_matrix_steps / parts * left_step_clocks +
                    resident * work.moves * warps * move_clocks / issue_width;
    clocks += resident * (work.scattered ? scattered_store_clocks : left_store_clocks) *
              work.results / (tiles * warp * parts);
    if (parts * shape.slices > 1)
      clocks += std::ceil(sums * shape.slices * 4 / work.shared_memory) * left_exchange_clocks +
                resident * left_exchanged_clocks * std::log2(parts * shape.slices) * sums / warp;
    return clocks;
  };
  const double thread_sums = sums / shape.slice_threads() * (work.split ? 2 : 1);
  const int resident =
      std::max(std::min(shape.min_blocks, blocks_by_memory(work.shared_memory, device)),
               resident_blocks(work.shared_memory, thread_sums, warps, device));
  const double clocks = rounds_clocks(tiles * parts, parts, resident, device, block);
  return clocks_to_seconds(left_start_clocks + clocks, work.bytes, device);
}

}  // namespace kiln
