#include "cli/fit/constants.hpp"

#include <algorithm>

#include "core/split.hpp"
#include "core/text.hpp"

namespace kiln::cli::fit {
namespace {

#define KILN_CONSTANT(family, name)                                                              \
  {                                                                                              \
#family, #name, [](FittedConstants & constants) -> double& { return constants.family.name; } \
  }

constexpr NamedConstant all[] = {
    KILN_CONSTANT(shared, scattered_store_clocks),
    KILN_CONSTANT(shared, row_copies_share),

    KILN_CONSTANT(gathered_gemm, mma.products_share),
    KILN_CONSTANT(gathered_gemm, mma.issue_share),
    KILN_CONSTANT(gathered_gemm, mma.shared_memory_share),
    KILN_CONSTANT(gathered_gemm, mma.bounds_instructions),
    KILN_CONSTANT(gathered_gemm, mma.column_copies_share),
    KILN_CONSTANT(gathered_gemm, mma_f64.products_share),
    KILN_CONSTANT(gathered_gemm, mma_f64.issue_share),
    KILN_CONSTANT(gathered_gemm, mma_f64.shared_memory_share),
    KILN_CONSTANT(gathered_gemm, mma_f64.bounds_instructions),
    KILN_CONSTANT(gathered_gemm, mma_f64.column_copies_share),
    KILN_CONSTANT(gathered_gemm, fma.products_share),
    KILN_CONSTANT(gathered_gemm, fma.issue_share),
    KILN_CONSTANT(gathered_gemm, fma.shared_memory_share),
    KILN_CONSTANT(gathered_gemm, fma.bounds_instructions),
    KILN_CONSTANT(gathered_gemm, fma.column_copies_share),
    KILN_CONSTANT(gathered_gemm, fma_f64.products_share),
    KILN_CONSTANT(gathered_gemm, fma_f64.issue_share),
    KILN_CONSTANT(gathered_gemm, fma_f64.shared_memory_share),
    KILN_CONSTANT(gathered_gemm, fma_f64.bounds_instructions),
    KILN_CONSTANT(gathered_gemm, fma_f64.column_copies_share),
    KILN_CONSTANT(gathered_gemm, copy_instructions),
    KILN_CONSTANT(gathered_gemm, split_instructions),
    KILN_CONSTANT(gathered_gemm, loop_instructions),
    KILN_CONSTANT(gathered_gemm, operand_read_wavefronts),
    KILN_CONSTANT(gathered_gemm, fma_waiting_warps),
    KILN_CONSTANT(gathered_gemm, mma_waiting_warps),
    KILN_CONSTANT(gathered_gemm, mma_split_waiting_warps),
    KILN_CONSTANT(gathered_gemm, mma_f64_waiting_warps),
    KILN_CONSTANT(gathered_gemm, lone_block_split_share),
    KILN_CONSTANT(gathered_gemm, step_clocks),
    KILN_CONSTANT(gathered_gemm, first_clocks),
    KILN_CONSTANT(gathered_gemm, vector_store_clocks),
    KILN_CONSTANT(gathered_gemm, neighbour_store_clocks),
    KILN_CONSTANT(gathered_gemm, exchange_clocks),
    KILN_CONSTANT(gathered_gemm, exchanged_sums_clocks),
    KILN_CONSTANT(gathered_gemm, late_share),
    KILN_CONSTANT(gathered_gemm, mma_f64_late_share),
    KILN_CONSTANT(gathered_gemm, uneven_threads_share),

    KILN_CONSTANT(mma_fragments, f32.products_share),
    KILN_CONSTANT(mma_fragments, f32.reads_share),
    KILN_CONSTANT(mma_fragments, f32.fragment_clocks),
    KILN_CONSTANT(mma_fragments, f32.copies_clocks),
    KILN_CONSTANT(mma_fragments, f32.stage_clocks),
    KILN_CONSTANT(mma_fragments, f32.lone_warps),
    KILN_CONSTANT(mma_fragments, f64.products_share),
    KILN_CONSTANT(mma_fragments, f64.reads_share),
    KILN_CONSTANT(mma_fragments, f64.fragment_clocks),
    KILN_CONSTANT(mma_fragments, f64.copies_clocks),
    KILN_CONSTANT(mma_fragments, f64.stage_clocks),
    KILN_CONSTANT(mma_fragments, f64.lone_warps),
    KILN_CONSTANT(mma_fragments, enough_warps),
    KILN_CONSTANT(mma_fragments, transposed_f32_share),
    KILN_CONSTANT(mma_fragments, transposed_16_bits_share),
    KILN_CONSTANT(mma_fragments, transposed_f64_share),
    KILN_CONSTANT(mma_fragments, conflict_share),
    KILN_CONSTANT(mma_fragments, split_clocks),
    KILN_CONSTANT(mma_fragments, gathered_copies_share),
    KILN_CONSTANT(mma_fragments, first_clocks),
    KILN_CONSTANT(mma_fragments, store_clocks),
    KILN_CONSTANT(mma_fragments, exchange_clocks),
    KILN_CONSTANT(mma_fragments, exchanged_sums_clocks),
    KILN_CONSTANT(mma_fragments, wait_clocks),
    KILN_CONSTANT(mma_fragments, start_clocks),
    KILN_CONSTANT(mma_fragments, staged_first_clocks),
    KILN_CONSTANT(mma_fragments, staged_copies_clocks),
    KILN_CONSTANT(mma_fragments, landing_16_bits_clocks),
    KILN_CONSTANT(mma_fragments, landing_f32_clocks),
    KILN_CONSTANT(mma_fragments, landing_f64_clocks),
    KILN_CONSTANT(mma_fragments, l2_bytes_a_clock),

    KILN_CONSTANT(wgmma_fragments, split.left_clocks),
    KILN_CONSTANT(wgmma_fragments, split.right_clocks),
    KILN_CONSTANT(wgmma_fragments, whole.left_clocks),
    KILN_CONSTANT(wgmma_fragments, whole.right_clocks),
    KILN_CONSTANT(wgmma_fragments, split_matrices.left_clocks),
    KILN_CONSTANT(wgmma_fragments, split_matrices.right_clocks),
    KILN_CONSTANT(wgmma_fragments, step_clocks),
    KILN_CONSTANT(wgmma_fragments, word_copies_share),
    KILN_CONSTANT(wgmma_fragments, conflict_clocks),
    KILN_CONSTANT(wgmma_fragments, row_word_copies_share),
    KILN_CONSTANT(wgmma_fragments, products_share),
    KILN_CONSTANT(wgmma_fragments, lone_warps),
    KILN_CONSTANT(wgmma_fragments, copies_clocks),
    KILN_CONSTANT(wgmma_fragments, gathered_copies_share),
    KILN_CONSTANT(wgmma_fragments, gathered_pairs_share),
    KILN_CONSTANT(wgmma_fragments, stage_clocks),
    KILN_CONSTANT(wgmma_fragments, first_clocks),
    KILN_CONSTANT(wgmma_fragments, store_clocks),
    KILN_CONSTANT(wgmma_fragments, exchange_clocks),
    KILN_CONSTANT(wgmma_fragments, exchanged_sums_clocks),
    KILN_CONSTANT(wgmma_fragments, start_clocks),
    KILN_CONSTANT(wgmma_fragments, move_clocks),

    KILN_CONSTANT(wgmma, products_share),
    KILN_CONSTANT(wgmma, filter_clocks_a_byte),
    KILN_CONSTANT(wgmma, halo_clocks_a_byte),
    KILN_CONSTANT(wgmma, step_clocks),
    KILN_CONSTANT(wgmma, lone_step_clocks),
    KILN_CONSTANT(wgmma, first_clocks),
    KILN_CONSTANT(wgmma, store_clocks),
    KILN_CONSTANT(wgmma, exchanged_sums_clocks),
    KILN_CONSTANT(wgmma, start_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.element_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.element_warps_share),
    KILN_CONSTANT(wgmma, gathered_16_bits.step_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.group_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.first_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.first_element_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.result_clocks),
    KILN_CONSTANT(wgmma, gathered_16_bits.result_warps_share),
    KILN_CONSTANT(wgmma, gathered_16_bits.products_share),
    KILN_CONSTANT(wgmma, gathered_f32.element_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.element_warps_share),
    KILN_CONSTANT(wgmma, gathered_f32.step_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.group_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.first_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.first_element_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.result_clocks),
    KILN_CONSTANT(wgmma, gathered_f32.result_warps_share),
    KILN_CONSTANT(wgmma, gathered_f32.products_share),
    KILN_CONSTANT(wgmma, gathered_split.element_clocks),
    KILN_CONSTANT(wgmma, gathered_split.element_warps_share),
    KILN_CONSTANT(wgmma, gathered_split.step_clocks),
    KILN_CONSTANT(wgmma, gathered_split.group_clocks),
    KILN_CONSTANT(wgmma, gathered_split.first_clocks),
    KILN_CONSTANT(wgmma, gathered_split.first_element_clocks),
    KILN_CONSTANT(wgmma, gathered_split.result_clocks),
    KILN_CONSTANT(wgmma, gathered_split.result_warps_share),
    KILN_CONSTANT(wgmma, gathered_split.products_share),
    KILN_CONSTANT(wgmma, gathered_halo_share),
    KILN_CONSTANT(wgmma, gathered_short_run_share),
    KILN_CONSTANT(wgmma, l2_bytes_a_clock),

    KILN_CONSTANT(dense, step_share),
    KILN_CONSTANT(dense, step_clocks),
    KILN_CONSTANT(dense, own_line_clocks),
    KILN_CONSTANT(dense, shared_line_clocks),
    KILN_CONSTANT(dense, large_filter_line_clocks),
    KILN_CONSTANT(dense, large_filter_bytes),
    KILN_CONSTANT(dense, first_clocks),
    KILN_CONSTANT(dense, pixel_words_clocks),
    KILN_CONSTANT(dense, pixel_words_least_rows),
    KILN_CONSTANT(dense, slab_clocks),
    KILN_CONSTANT(dense, half_lines_share),
    KILN_CONSTANT(dense, access_clocks),
    KILN_CONSTANT(dense, phase_access_clocks),
    KILN_CONSTANT(dense, apart_share),
    KILN_CONSTANT(dense, memory_share),
    KILN_CONSTANT(dense, halo_step_share),
    KILN_CONSTANT(dense, halo_step_clocks),
    KILN_CONSTANT(dense, halo_last_clocks),
    KILN_CONSTANT(dense, halo_apart_share),
    KILN_CONSTANT(dense, planar_step_share),
    KILN_CONSTANT(dense, planar_pixels_left_share),
    KILN_CONSTANT(dense, planar_line_clocks),
    KILN_CONSTANT(dense, shifted_vector_clocks),
    KILN_CONSTANT(dense, shifted_halo_clocks),

    KILN_CONSTANT(dense_wgrad, of_16_bits.step_share),
    KILN_CONSTANT(dense_wgrad, of_16_bits.step_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.few_stages_share),
    KILN_CONSTANT(dense_wgrad, of_16_bits.copy_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.line_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.odd_line_share),
    KILN_CONSTANT(dense_wgrad, of_16_bits.l2_bytes_a_clock),
    KILN_CONSTANT(dense_wgrad, of_16_bits.odd_l2_share),
    KILN_CONSTANT(dense_wgrad, of_16_bits.merged),
    KILN_CONSTANT(dense_wgrad, of_16_bits.merged_in_clusters),
    KILN_CONSTANT(dense_wgrad, of_16_bits.first_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.start_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.exchange_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.exchanged_sums_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.left_sums_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.result_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.slab_clocks),
    KILN_CONSTANT(dense_wgrad, of_16_bits.apart_share),
    KILN_CONSTANT(dense_wgrad, of_f32.step_share),
    KILN_CONSTANT(dense_wgrad, of_f32.step_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.few_stages_share),
    KILN_CONSTANT(dense_wgrad, of_f32.copy_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.line_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.odd_line_share),
    KILN_CONSTANT(dense_wgrad, of_f32.l2_bytes_a_clock),
    KILN_CONSTANT(dense_wgrad, of_f32.odd_l2_share),
    KILN_CONSTANT(dense_wgrad, of_f32.merged),
    KILN_CONSTANT(dense_wgrad, of_f32.merged_in_clusters),
    KILN_CONSTANT(dense_wgrad, of_f32.first_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.start_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.exchange_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.exchanged_sums_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.left_sums_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.result_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.slab_clocks),
    KILN_CONSTANT(dense_wgrad, of_f32.apart_share),
    KILN_CONSTANT(dense_wgrad, second_seconds),
    KILN_CONSTANT(dense_wgrad, round_seconds),
    KILN_CONSTANT(dense_wgrad, second_bytes_a_second),
    KILN_CONSTANT(dense_wgrad, promoted_wait_clocks),
    KILN_CONSTANT(dense_wgrad, single_clocks),

    KILN_CONSTANT(depthwise, sliding_share),
    KILN_CONSTANT(depthwise, sliding_waiting_warps),
    KILN_CONSTANT(depthwise, sliding_channels_inner_share),
    KILN_CONSTANT(depthwise, sliding_narrow_share),
    KILN_CONSTANT(depthwise, sliding_step_clocks),
    KILN_CONSTANT(depthwise, sliding_first_clocks),
    KILN_CONSTANT(depthwise, thread_instructions),
    KILN_CONSTANT(depthwise, copy_instructions),
    KILN_CONSTANT(depthwise, issue_share),
    KILN_CONSTANT(depthwise, product_share),
    KILN_CONSTANT(depthwise, memory_share),
    KILN_CONSTANT(depthwise, halo_place_instructions),
    KILN_CONSTANT(depthwise, halo_weight_instructions),
    KILN_CONSTANT(depthwise, halo_result_instructions),
    KILN_CONSTANT(depthwise, halo_share),
    KILN_CONSTANT(depthwise, halo_waiting_warps),
    KILN_CONSTANT(depthwise, halo_first_clocks),
    KILN_CONSTANT(depthwise, halo_first_instruction_clocks),
    KILN_CONSTANT(depthwise, halo_tile_clocks),
    KILN_CONSTANT(depthwise, halo_memory_share),
    KILN_CONSTANT(depthwise, toeplitz_pixel_clocks),
    KILN_CONSTANT(depthwise, toeplitz_result_clocks),
    KILN_CONSTANT(depthwise, toeplitz_box_clocks),
    KILN_CONSTANT(depthwise, toeplitz_weight_clocks),
    KILN_CONSTANT(depthwise, toeplitz_tile_clocks),
    KILN_CONSTANT(depthwise, toeplitz_share),
    KILN_CONSTANT(depthwise, toeplitz_memory_share),

    KILN_CONSTANT(grouped, rate_share),
    KILN_CONSTANT(grouped, enough_warps),
    KILN_CONSTANT(grouped, first_clocks),
    KILN_CONSTANT(grouped, halo_rate_share),
    KILN_CONSTANT(grouped, halo_memory_share),
    KILN_CONSTANT(grouped, halo_first_clocks),
    KILN_CONSTANT(grouped, halo_tile_clocks),

    KILN_CONSTANT(direct, wait_clocks),
    KILN_CONSTANT(direct, product_instructions),
    KILN_CONSTANT(direct, output_instructions),
    KILN_CONSTANT(direct, first_clocks),
};
#undef KILN_CONSTANT

static_assert(std::size(all) * sizeof(double) == sizeof(FittedConstants),
              "a constant of fitted.hpp is missing above");

}  // namespace

std::span<const NamedConstant> all_constants() { return all; }

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const NamedConstant& constant : all)
    if (names.empty() || names.back() != constant.family) names.emplace_back(constant.family);
  return names;
}

std::string definition_of(const FittedConstants& constants, const std::string& arch) {
  FittedConstants copy = constants;
  std::string text = cat("constexpr FittedConstants fitted_", arch, "{\n");
  std::vector<std::string> open;  // structs whose braces are open
  const auto indented = [&](const std::string& line) {
    text += std::string(4 * (open.size() + 1), ' ') + line + "\n";
  };
  const auto close = [&] {
    open.pop_back();
    indented("},");
  };
  for (const NamedConstant& constant : all) {
    std::vector<std::string> path{std::string(constant.family)};
    for (const std::string_view part : split(constant.name, '.')) path.emplace_back(part);
    const std::string field = path.back();
    path.pop_back();
    const auto begins = [&] {  // whether `path` begins with the open structs
      return open.size() <= path.size() && std::equal(open.begin(), open.end(), path.begin());
    };
    while (!begins()) close();
    while (open.size() < path.size()) {
      const std::string& next = path[open.size()];
      indented(cat(".", next, " = {"));
      open.push_back(next);
    }
    indented(cat(".", field, " = ", constant.of(copy), ","));
  }
  while (!open.empty()) close();
  return text + "};\n";
}

}  // namespace kiln::cli::fit
