#include "engines/conv/few_output_channels/few_output_channels.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/line_store.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector_bytes = copied_bytes;

UnitedGather united_of(const Seen& seen) {
  return std::get<UnitedGather>(unite_phases(seen.gather));
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const auto answer = unite_phases(seen.gather);
  if (const auto* refused = std::get_if<Refusal>(&answer)) return *refused;
  const auto& united = std::get<UnitedGather>(answer);
  if (auto refused = mma_refusal(problem, united.reduction, seen.device)) return refused;
  const Gather& gather = united.gather;
  const Gather::Phase& phase = united.whole();
  if (gather.stride[2] != 1)
    return cat("the stride along the width is ", gather.stride[2], "; expected 1");
  // Several phases share a tile, so more pairs are worth taking than of one phase: other engines
  // compute the phases one by one.
  if (std::max(gather.rows, united.taps_in_row) > most_pairs ||
      (gather.phases.size() == 1 && few_output_channels_pairs(united) > most_pairs))
    return cat(gather.rows, " output channels a group, each with ", united.taps_in_row,
               " taps in a row of the filter; expected at most ", most_pairs, " taps together");
  if (!vectors_of_channels(problem, gather) && gather.source_strides[4] != 1)
    return cat(
        "neither the pixels of a row are contiguous in the input, nor channels, in multiples of ",
        vector_bytes, " bytes");
  // Products of larger sizes would not fit into 32 bits.
  constexpr std::int64_t most = 1 << 24;
  for (int i = 0; i < 3; ++i)
    for (const std::int64_t size :
         {gather.source[i], phase.pixels[i], phase.pixels[i] * gather.stride[i],
          std::abs(gather.step[i]) * phase.taps[i], std::abs(phase.origin[i])})
      if (size > most) return cat("a size is ", size, "; expected at most ", most);
  return {};
}

std::vector<FewOutputChannelsTile> lay(const Seen& seen, bool by_warpgroups) {
  return few_output_channels_tiles(seen.problem, united_of(seen), by_warpgroups, seen.device);
}

Refusal why_no_tile(const Seen& seen) {
  return cat("two stages of ", united_of(seen).whole().taps[1],
             " rows of taps and of the source under them do not fit into shared memory, or offsets "
             "into 32 bits");
}

// Blocks are persistent. Tiles at an image's edges have fewer rows of taps; with a number of blocks
// coprime to the tiles of an image, every block gets the same share of edge tiles.
TileCounts count(const FewOutputChannelsTile& tile, const Seen& seen) {
  const std::int64_t tiles = seen.problem.batch * tile.image_tiles;
  int resident = 1;
  constexpr int most_resident = 4;
  while (resident < most_resident &&
         fits_shared_memory(tile.shared_memory(), resident + 1, seen.device))
    ++resident;
  const std::int64_t places = std::int64_t{seen.device.multiprocessors} * resident;
  std::int64_t blocks = std::max<std::int64_t>(std::min(tiles, places), 1);
  if (tiles > places)
    while (std::gcd(blocks, tile.image_tiles) != 1) --blocks;
  return {.of_pixels = tiles, .all = tiles, .blocks = blocks};
}

Refusal tile_refusal(const FewOutputChannelsTile& tile, const Seen& seen, const Sharing& /*one*/) {
  if (seen.problem.batch * tile.image_tiles > limit32) return cat("more than ", limit32, " tiles");
  return {};
}

FragmentWork work_of_tile(const FewOutputChannelsTile& tile, const Seen& seen,
                          const TileCounts& tiles) {
  FragmentWork work;
  work.type = seen.problem.type();
  work.split = tile.split;
  work.shape = tile.shape;
  work.shared_memory = static_cast<double>(tile.shared_memory());
  work.tiles = tiles.blocks;
  work.results = static_cast<double>(operands_of(seen.problem).back().count());
  const auto chunks =  // chunks of channels that a block computes
      static_cast<double>(ceil_div(tiles.all, tiles.blocks) * tile.planes_of_taps *
                          ceil_div(seen.gather.channels, tile.chunk_channels()));
  work.fragments = chunks * tile.live_taps * static_cast<double>(tile.chunk_steps);
  const FewOutputChannelsTile::Copies copies = tile.copies();
  work.scalar_copies = tile.copy_bytes != vector_bytes;
  work.copies = chunks * static_cast<double>(copies.halo);
  work.copy_bytes = static_cast<double>(tile.copy_bytes);
  work.row_copies = chunks * static_cast<double>(copies.filter);
  work.row_copy_bytes = static_cast<double>(tile.element);
  if (seen.problem.type() == KILN_DATA_DOUBLE) work.landings = chunks;
  work.scattered = true;  // each result is a sum over the taps of a row, stored by itself
  work.bytes = work_of(seen.problem, false).bytes;
  return work;
}

double seconds_of(const FewOutputChannelsTile& tile, const Seen& seen, const TileCounts& tiles) {
  const FragmentWork work = work_of_tile(tile, seen, tiles);
  if (!tile.planes) return fragment_seconds(work, 1, seen.device);
  const double seconds = warpgroup_fragment_seconds(work, 1, seen.device);
  if (seen.gather.phases.size() == 1 || tile.taps > 2) return seconds;
  // Strided gradients with at most two rows of taps a phase: on an H200, tiles of at least 512
  // rows, of at least 384, and smaller ones took these shares of the estimate, because resident
  // blocks hide each other's copies and stores.
  constexpr double rows_512_share = 0.9, rows_384_share = 0.8, fewer_rows_share = 0.6;
  return seconds * (tile.shape.m >= 512   ? rows_512_share
                    : tile.shape.m >= 384 ? rows_384_share
                                          : fewer_rows_share);
}

std::vector<Offer> offers(const FewOutputChannelsTile& tile, const Seen& seen,
                          const TileCounts& tiles) {
  return {{{}, seconds_of(tile, seen, tiles)}};
}

std::string describe_kernel(const FewOutputChannelsTile& tile) {
  return cat(describe(tile), tile.split ? ", 3 products" : "");
}

int threads(const FewOutputChannelsTile& tile) { return tile.shape.threads(); }

std::uint32_t shared_memory(const FewOutputChannelsTile& tile, const Seen& /*seen*/) {
  return static_cast<std::uint32_t>(tile.shared_memory());
}

void write(KernelSpec& spec, const FewOutputChannelsTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const UnitedGather united = united_of(seen);
  const Gather& gather = united.gather;
  spec.alignment = static_cast<std::size_t>(tile.copy_bytes);
  spec.constants = gather_constants(problem, gather);
  const ConstantWriter add(spec.constants);
  add("offset_t", TypeName{"int"});
  add("out_offset_t", TypeName{"int"});
  add_fragment_constants(spec.constants, tile.shape, problem, 1);
  add("FILTER_PLANES", tile.planes, "the filter lies in planes of 16 bytes of channels, for wgmma");
  if (tile.planes) add_warpgroup_instruction(spec.constants, tile.shape.n);
  add_line_store_constants(spec.constants, problem, gather, 1, 1, 1);
  add("TILE_P", tile.rows, "rows of output pixels of a tile");
  add("TILE_Q", tile.columns, "columns of the source of a tile");
  add("STRIPS", tile.strips, "strips of columns that the source is cut into");
  add("STRIP_STEP", tile.strip_step, "columns from one strip to the next");
  add("CHUNK_STEPS", tile.chunk_steps, "fragments, 32 bytes of channels each, in a chunk");
  add("COPY_BYTES", tile.copy_bytes, "bytes in one copy of the source");
  add("ROW_PHASES", united.row_phases, "phases along the height");
  add("COLUMN_PHASES", united.column_phases, "phases along the width");
  add("TAPS_IN_ROW", tile.taps_in_row,
      "taps in a row of the filter, over all phases along the width");
  add("TILE_LINES", tile.lines, "lines of a tile: pairs of an output channel and a phase");
  add("LINE_GROUPS", tile.line_groups, "tiles that together have all lines");
  add("EXCHANGE_LINES", tile.exchange_lines,
      "lines whose sums pass through shared memory together");
  add("LOAD_FRAGMENTS", tile.load_fragments, "fragments between two shares of a stage's copies");
  add_split_constants(spec.constants, tile.split, united.reduction);
  // A phase's missing rows of taps are zeros in its filters, and zero times infinity is NaN.
  add_checked_constant(spec.constants, problem, true, false, united.gaps);
  // The sums over channels and rows of taps are promoted; the taps of a row are added in f32.
  add_promotion_constants(spec.constants, problem, united.reduction,
                          gather.channels * tile.planes_of_taps * tile.taps, tile.chunk_steps);
  add.divisor("DIV_LINE_GROUPS", tile.line_groups);
  add.divisor("DIV_GROUPS", gather.groups);
  add.divisor("DIV_STRIPS", tile.strips);
  add.divisor("DIV_TILES_P", tile.tiles);
  add.divisor("DIV_OUT_O", united.whole().pixels[0]);
}

}  // namespace

const Recipe<FewOutputChannelsTile> few_output_channels_mma = {
    .name = "few_output_channels_mma",
    .file = "conv/few_output_channels/few_output_channels_mma.cu",
    .refusal = refusal,
    .lay = [](const Seen& seen) { return lay(seen, false); },
    .tile_refusal = tile_refusal,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe_kernel,
    .threads = threads,
    .shared_memory = shared_memory,
    .write = write,
};

const Recipe<FewOutputChannelsTile> few_output_channels_wgmma = {
    .name = "few_output_channels_wgmma",
    .file = "conv/few_output_channels/few_output_channels_wgmma.cu",
    .refusal =
        [](const Seen& seen) {
          if (auto refused = matrices_refusal(seen.problem)) return refused;
          if (auto refused = warpgroup_refusal(seen.device)) return refused;
          return refusal(seen);
        },
    .lay = [](const Seen& seen) { return lay(seen, true); },
    .tile_refusal = tile_refusal,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe_kernel,
    .threads = threads,
    .shared_memory = shared_memory,
    .write = write,
};

}  // namespace kiln
