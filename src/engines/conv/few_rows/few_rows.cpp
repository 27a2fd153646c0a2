#include "engines/conv/few_rows/few_rows.hpp"

#include <string>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/few_rows_cost.hpp"

namespace kiln {
namespace {

constexpr int warps = 8, unroll = 4, threads = 32 * warps;

std::int64_t element_of(const Seen& seen) {
  return static_cast<std::int64_t>(size_of(seen.problem.type()));
}

Refusal layout_refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  if (problem.pass != ConvolutionPass::fprop) return "a data gradient; this engine takes none";
  if (problem.out_pixels() != 1 || problem.taps() != 1)
    return cat("results of ", problem.out_pixels(), " pixels and a filter of ", problem.taps(),
               " taps; expected one of each");
  if (gather.groups > 1) return cat(gather.groups, " groups; this engine takes one");
  const std::int64_t vector = 16 / element_of(seen);
  if (gather.channels % vector != 0)
    return cat(gather.channels, " input channels; expected a multiple of ", vector);
  if (gather.source_strides[1] != 1 || gather.w_channel != 1)
    return "the channels of x or w are not contiguous";
  if (gather.source_strides[0] % vector != 0 || gather.w_row % vector != 0)
    return cat("images of x or filters of w are not multiples of ", vector, " elements apart");
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment, " bytes; expected 16");
  return {};
}

Refusal refusal_of_mma(const Seen& seen) {
  if (size_of(seen.problem.type()) != 2)
    return cat("the data type is ", name_of(seen.problem.type()), "; expected f16 or bf16");
  // The tensor cores round each sum toward zero.
  constexpr std::int64_t longest_sum = 4096 * warps;
  if (seen.gather.channels > longest_sum)
    return cat(seen.gather.channels, " input channels; expected at most ", longest_sum);
  if (auto refused = layout_refusal(seen)) return refused;
  return mma_refusal(seen.problem, seen.gather.channels, seen.device);
}

Refusal refusal_of_fma(const Seen& seen) {
  if (seen.problem.type() != KILN_DATA_FLOAT)
    return cat("the data type is ", name_of(seen.problem.type()), "; expected f32");
  return layout_refusal(seen);
}

Refusal tile_refusal(const FewRowsTile& tile, const Seen& seen, const Sharing& /*sharing*/) {
  if (seen.problem.batch <= tile.rows) return {};
  return cat(seen.problem.batch, " images; expected at most ", tile.rows);
}

TileCounts count(const FewRowsTile& tile, const Seen& seen) {
  return {1, ceil_div(seen.gather.rows, 16 * tile.left)};
}

std::vector<Offer> offers(const FewRowsTile& tile, const Seen& seen, const TileCounts& tiles) {
  FewRowsWork work;
  work.blocks = static_cast<double>(tiles.all);
  const auto line = static_cast<double>(seen.gather.channels * element_of(seen));
  work.weight_bytes = 16 * tile.left * line;
  work.row_bytes = static_cast<double>(seen.problem.batch) * line;
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, few_rows_seconds(work, seen.device)}};
}

void write(KernelSpec& spec, const FewRowsTile& tile, const Seen& seen) {
  spec.alignment = 16;
  spec.constants = gather_constants(seen.problem, seen.gather);
  const ConstantWriter add(spec.constants);
  add("MOST_ROWS", std::int64_t{tile.rows});
  add("LEFT", std::int64_t{tile.left});
  add("WARPS", std::int64_t{warps});
  add("UNROLL", std::int64_t{unroll});
  add_sum_registers(spec.constants, tile.left, tile.rows / 8, false, "f32");
}

const char* fma_by_name(const ConvolutionProblem& /*problem*/) {
  return "with 8 rows others were as fast, and its estimate is not fitted";
}

template <bool mma>
constexpr Recipe<FewRowsTile> recipe(const char* name, const char* file,
                                     Refusal refusal(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .one_pixel = true,
      .mixed_types = mma,
      .only_by_name = mma ? nullptr : fma_by_name,
      .refusal = refusal,
      .lay =
          [](const Seen& /*seen*/) {
            if (mma) return std::vector<FewRowsTile>{{8, 1}, {16, 1}, {8, 2}, {16, 2}};
            return std::vector<FewRowsTile>{{8, 1}};
          },
      .tile_refusal = tile_refusal,
      .count = count,
      .offers = offers,
      .describe = [](const FewRowsTile& tile) -> std::string {
        return cat(16 * tile.left, " filters by ", tile.rows, " rows, ", threads, " threads");
      },
      .threads = [](const FewRowsTile& /*tile*/) { return threads; },
      .shared_memory =
          [](const FewRowsTile& tile, const Seen& /*seen*/) {
            return static_cast<std::uint32_t>(warps * 16 * tile.left * tile.rows * 4);
          },
      .write = write,
  };
}

}  // namespace

constinit const Recipe<FewRowsTile> few_rows_mma =
    recipe<true>("few_rows_mma", "conv/few_rows/few_rows_mma.cu", refusal_of_mma);
constinit const Recipe<FewRowsTile> few_rows_fma =
    recipe<false>("few_rows_fma", "conv/few_rows/few_rows_fma.cu", refusal_of_fma);

}  // namespace kiln
