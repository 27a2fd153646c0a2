#include "engines/conv/few_input_channels/few_input_channels_nhwc_mma.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/conv/tile/whole_rows.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr int block_warps = FewInputChannelsNhwcTile::warps;
constexpr std::int64_t product_pixels = 16, resident = 2;
constexpr double block_threads = 32.0 * block_warps;

using Tile = FewInputChannelsNhwcTile;

std::int64_t steps_of(const Gather& gather) {
  return ceil_div(gather.channels * gather.most_taps(), product_pixels);
}

// Bytes from one row of `elements` elements to the next in shared memory: a row's copies, and as
// many bytes beyond a multiple of 16 as from row to row of the tensor.
std::int64_t uneven_row_pitch(std::int64_t elements, std::int64_t stride) {
  constexpr std::int64_t copy = channel_vector_bytes / 2;
  const std::int64_t copied = round_up(elements + copy - 1, copy);
  return 2 * (copied + stride % copy);
}

// A warp takes all output channels where its registers hold their sums, else the share that leaves
// the fewest channels idle.
void set_channels(Tile& tile, std::int64_t rows) {
  const std::int64_t fours = ceil_div(rows, warp_octets * octet);
  if (fours <= 3) {
    tile.octets = fours * warp_octets;
    return;
  }
  const auto idle = [&](std::int64_t of_block) { return ceil_div(fours, of_block) * of_block; };
  const bool three = idle(3) < idle(4);
  tile.octets = (three ? 3 : 2) * warp_octets;
  tile.warps_n = three ? 1 : 2;
}

// The tile with the lowest estimate of products and copies; none if none fits.
std::vector<Tile> lay(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const auto met = [&](std::size_t i, std::int64_t pixels) {
    return (pixels - 1) * gather.stride[i] + (phase.taps[i] - 1) * std::abs(gather.step[i]) + 1;
  };
  Tile tile;
  set_channels(tile, gather.rows);
  tile.copy_bytes =
      whole_row_copy(seen.problem, gather.source[2], gather.channels, gather.source_strides);
  // Volumes keep copies of 2 bytes: planes would have to begin as rows do.
  tile.uneven_rows = tile.copy_bytes == 2 && phase.taps[0] == 1;
  if (tile.uneven_rows) tile.copy_bytes = channel_vector_bytes;
  const std::int64_t tables = steps_of(gather) * (tile.channels() / octet * 256 + 32);
  std::vector<Tile> best;
  double least = 0;
  for (tile.q = product_pixels; tile.q <= tile.warps_p() * 32; tile.q *= 2) {
    tile.p = tile.warps_p() * 32 / tile.q;
    const std::int64_t row = met(2, tile.q) * gather.channels;
    tile.pitch = tile.uneven_rows ? uneven_row_pitch(row, gather.source_strides[3])
                                  : whole_row_pitch(row, 2, tile.copy_bytes);
    tile.stage_bytes = phase.taps[0] * met(1, tile.p) * tile.pitch;
    if (tile.uneven_rows)
      tile.stage_bytes = round_up(tile.stage_bytes + tile.copy_bytes - 2, channel_vector_bytes);
    constexpr std::int64_t most_stage = 1 << 16;  // bytes: offsets in a stage have 16 bits
    if (tile.stage_bytes > most_stage) continue;
    const auto fits = [&](std::int64_t stages, std::int64_t blocks) {
      tile.stages = stages;
      tile.shared_memory = stages * tile.stage_bytes + tables;
      return tile.shared_memory <=
             std::min<std::int64_t>(seen.device.shared_memory_per_block,
                                    seen.device.shared_memory_per_multiprocessor / blocks - 1024);
    };
    if (!fits(3, resident) && !fits(2, resident) && !fits(2, 1)) continue;
    const auto count =
        static_cast<double>(ceil_div(phase.pixels[1], tile.p) * ceil_div(phase.pixels[2], tile.q));
    const double work =
        count * static_cast<double>(4 * tile.p * tile.q * steps_of(gather) + tile.stage_bytes);
    if (best.empty() || work < least) best = {tile}, least = work;
  }
  return best;
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  if (auto refused = half_products_refusal(problem, seen.device)) return refused;
  if (problem.groups > 1) return cat(problem.groups, " groups; expected 1");
  if (gather.phases.size() > 1) return "a data gradient with a stride; this engine takes stride 1";
  if (gather.most_taps() == 0) return "no tap of the filter meets the input";
  constexpr std::int64_t most_channels = 8, most_reduction = 1024;
  if (gather.channels > most_channels)
    return cat(gather.channels, " input channels; expected at most ", most_channels);
  if (gather.channels * gather.most_taps() > most_reduction)
    return cat("filters of ", gather.channels * gather.most_taps(), " elements; expected at most ",
               most_reduction);
  const std::int64_t vector = channel_vector(problem.type());
  if (gather.rows % vector != 0)
    return cat(gather.rows, " output channels; expected a multiple of ", vector);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  if (auto refused = whole_rows_refusal(dgrad ? "dy" : "x", gather.source[2], gather.channels,
                                        gather.source_strides))
    return refused;
  if (problem.alignment < channel_vector_bytes)
    return cat("the alignment is ", problem.alignment, " bytes; expected ", channel_vector_bytes);
  if (auto refused = vector_strides_refusal(dgrad ? "dx" : "y", gather.out_strides, vector))
    return refused;
  if (gather.z_strides != gather.out_strides)
    return "z and the output have different strides; this engine takes equal ones";
  return whole_row_sizes_refusal(gather, gather.channels);
}

// Blocks that share a multiprocessor.
std::int64_t resident_blocks(const Tile& tile, const Seen& seen) {
  return std::clamp<std::int64_t>(
      seen.device.shared_memory_per_multiprocessor / (tile.shared_memory + 1024), 1, resident);
}

std::int64_t channel_tiles(const Tile& tile, const Seen& seen) {
  return ceil_div(seen.gather.rows, tile.channels());
}

TileCounts count(const Tile& tile, const Seen& seen) {
  const Spatial& pixels = seen.gather.phases.front().pixels;
  const std::int64_t of_channels = channel_tiles(tile, seen);
  const std::int64_t of_pixels =
      seen.problem.batch * pixels[0] * ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], tile.q);
  const std::int64_t slots = std::clamp<std::int64_t>(
      resident_blocks(tile, seen) * seen.device.multiprocessors / of_channels, 1,
      std::max<std::int64_t>(of_pixels, 1));
  return {.of_pixels = of_pixels, .all = of_pixels * of_channels, .blocks = of_channels * slots};
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  GroupedWork work;
  work.blocks = static_cast<double>(tiles.all);
  work.warps = block_warps;
  // Per step and 32 pixels, a warp reads operand A by 16 loads of one element per lane and operand
  // B by two wavefronts per octet; at the end it stores the results.
  const double warps = work.blocks * work.warps;
  work.products = warps * static_cast<double>(2 * tile.octets * steps_of(seen.gather));
  work.wavefronts = warps * static_cast<double>((17 + 2 * tile.octets) * steps_of(seen.gather) +
                                                4 * tile.octets) +
                    work.blocks * static_cast<double>(tile.stage_bytes) / 64;
  work.bytes = work_of(seen.problem, false).bytes;
  // By an H200's times: words of the filter are loaded 8 at a time by each thread; copies of 2
  // bytes pass through registers, and each waits for memory.
  constexpr double words_at_once = 8, words_clocks = 1200, copy_clocks = 1000;
  const auto rounds = [](std::int64_t count, double at_once) {
    return std::ceil(static_cast<double>(count) / (at_once * block_threads));
  };
  double clocks =
      rounds(steps_of(seen.gather) * tile.channels() / octet * 64, words_at_once) * words_clocks;
  if (tile.copy_bytes == 2)
    clocks += rounds(tile.stage_bytes / 2, 1) * copy_clocks *
              std::ceil(work.blocks / static_cast<double>(resident * seen.device.multiprocessors));
  return {{{}, grouped_seconds(work, seen.device) + clocks / clock_rate(seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", tile.q, " pixels x ", tile.channels(), " channels, ", block_warps * 32,
             " threads, ", tile.stages, " stages");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  const Spatial& pixels = gather.phases.front().pixels;
  spec.constants = gather_constants(seen.problem, gather);
  const ConstantWriter add(spec.constants);
  add("OCTETS", tile.octets, "of channels of a warp");
  add("WARPS_P", tile.warps_p(), "of 32 pixels");
  add("WARPS_N", tile.warps_n, "that share a block's channels");
  add("TILE_P", tile.p, "rows of pixels of a block");
  add("TILE_Q", tile.q);
  add("CHANNEL_TILES", channel_tiles(tile, seen));
  add("COPY_BYTES", tile.copy_bytes, "of the source");
  add("UNEVEN_ROWS", tile.uneven_rows, "rows of the source begin at any element");
  add("PITCH", tile.pitch, "from one of its rows to the next");
  add("STAGES", tile.stages);
  add("SHARED_BYTES", tile.shared_memory);
  add("MIN_BLOCKS", resident_blocks(tile, seen));
  add.wide_divisor("DIV_TILES_Q", ceil_div(pixels[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(pixels[1], tile.p));
  add.wide_divisor("DIV_OUT_O", pixels[0]);
}

}  // namespace

const Recipe<FewInputChannelsNhwcTile> few_input_channels_nhwc_mma = {
    .name = "few_input_channels_nhwc_mma",
    .file = "conv/few_input_channels/few_input_channels_nhwc_mma.cu",
    .refusal = refusal,
    .lay = lay,
    .no_tile = "the source under 256 output pixels does not fit into a block's shared memory",
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = [](const Tile&) { return block_warps * 32; },
    .shared_memory = shared_memory_of,
    .alignment = vector_alignment,
    .write = write,
};

}  // namespace kiln
