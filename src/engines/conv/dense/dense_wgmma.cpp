#include "engines/conv/dense/dense_wgmma.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/channel_sums/gradient_finish.hpp"
#include "engines/conv/channel_sums/moments_finish.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/epilogue/gradient.hpp"
#include "engines/conv/dense/epilogue/moments.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/planar.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/dense/turned_filter.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

std::size_t bytes_of_row(const ConvolutionProblem& problem) {
  return problem.epilogue.moments ? partial_moments_bytes : partial_sums_bytes;
}

RowParts row_parts(const DenseTile& tile, const Seen& seen) {
  const Gather::Phase& phase = seen.gather.phases.front();
  const std::int64_t batch = seen.problem.batch;
  return {row_tiles(tile, seen.gather), pixel_tiles(tile, batch, phase), tile.rows(), tile.pixels(),
          batch * phase.out_pixels(),   seen.device.multiprocessors};
}

template <bool planar>
Refusal refusal(const Seen& seen) {
  if (planar) return planar_refusal(seen.problem, seen.gather, seen.device);
  if (auto refused = dense_refusal(seen.problem, seen.gather, seen.device)) return refused;
  if (auto refused = dense_moments_refusal(seen.problem, seen.gather)) return refused;
  return dense_gradient_refusal(seen.problem, seen.gather);
}

Refusal why_no_tile(const Seen& seen) {
  const bool parts = leaves_parts(seen.problem);
  return cat(seen.gather.rows, " output channels a group; expected a multiple of ",
             parts ? dense_lines(seen.problem, seen.gather, 0).rows : 16,
             parts ? ", which are summed together" : "", ", so that a tile ends with a group");
}

TileCounts count(const DenseTile& tile, const Seen& seen) {
  TileCounts tiles;
  for (const Gather::Phase& phase : phases_of(tile, seen.gather))
    tiles.of_pixels += pixel_tiles(tile, seen.problem.batch, phase);
  tiles.all = tiles.of_pixels * row_tiles(tile, seen.gather);
  return tiles;
}

DenseWork work_of_tile(const DenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  DenseWork work;
  work.line_bytes = static_cast<int>(tile.lines.channels) * tile.element;
  work.pixels = tile.pixels();
  work.rows = tile.rows();
  work.warpgroups = tile.consumers;
  work.pixels_in_words = tile.planar && tile.element == 4;
  work.half_lines = tile.planar ? tile.line_pixels() < planar_line(problem.type())
                                : tile.joined && tile.result_line < tile.lines.rows;
  work.store_bytes = static_cast<int>(tile.store_pixels) * tile.element;
  const std::vector<Operand> operands = operands_of(problem);
  for (const Operand& operand : operands)
    if (operand.name == std::string_view("w"))
      work.filter_bytes =
          static_cast<double>(operand.count()) * static_cast<double>(size_of(operand.type));
  work.bytes = work_of(problem, false).bytes;
  const std::int64_t rows = row_tiles(tile, seen.gather);
  for (const Gather::Phase& phase : phases_of(tile, seen.gather))
    work.phases.push_back(
        {pixel_tiles(tile, problem.batch, phase) * rows,
         phase.tap_count() * ceil_div(seen.gather.channels, tile.lines.channels)});
  work.moments = leaves_parts(problem);
  if (work.moments) work.blocks = row_parts(tile, seen).blocks();
  return work;
}

std::vector<Offer> offers(const DenseTile& tile, const Seen& seen, const TileCounts& /*tiles*/) {
  Offer only;
  only.seconds = dense_seconds(work_of_tile(tile, seen), seen.device) +
                 turned_filter_seconds(seen.problem, seen.device);
  only.workspace = leaves_parts(seen.problem)
                       ? row_parts(tile, seen).workspace(bytes_of_row(seen.problem))
                       : turned_filter_bytes(seen.problem);
  return {only};
}

// Registers of a thread of the producer warpgroup, and of the consumers.
struct Registers {
  int producer, consumer;
};
Registers registers_of(const DenseTile& tile) {
  return tile.consumers == 3 ? Registers{32, 160} : Registers{40, 232};
}

void write(KernelSpec& spec, const DenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  spec.alignment = 16;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const auto add_phases = [&](const char* name, std::size_t i) {
    std::vector<std::int64_t> values;
    for (const Gather::Phase& phase : gather.phases)
      values.push_back(phase.tap_count() == 0 ? 0 : dense_phase(gather, phase).lower[i]);
    add(name, std::move(values));
  };
  add_phases("LOWER_W", 0);
  add_phases("LOWER_H", 1);
  add_phases("LOWER_D", 2);
  add_dense_space(spec.constants, gather);
  add_dense_lines(spec.constants, tile.lines, problem);
  const bool lacks_taps = gather.phases.back().tap_count() == 0;
  add("MAY_LACK_TAPS", lacks_taps, "some phase has no tap: the sums of its pixels are 0");
  add("CHANNEL_STEPS", ceil_div(gather.channels, tile.lines.channels),
      "steps of the reduction in a tap");
  add("ROW_TILES", row_tiles(tile, gather) / (problem.group_strides ? gather.groups : 1));
  add("PHASES_TOGETHER", !tile.joined && takes_phases_in_turn(gather),
      "the tiles of the phases are taken in turn");
  add("PHASES_JOINED", tile.joined, "the rows of all phases are rows of one product");
  add("RESULT_LINE", tile.result_line, "rows of a pixel in a line of results");
  add("PLANE_TILES",
      tile.planar ? ceil_div(gather.phases.front().out_pixels(), tile.pixels() / tile.images) : 1,
      "PLANAR: tiles of pixels in an image, or in IMAGES of them");
  add("PIXELS_LEFT", tile.pixels_left);
  add("PLANAR", tile.planar, "channels first: the pixels of a channel are contiguous");
  add("IMAGES", std::int64_t{tile.images}, "PLANAR: images in a tile");
  add("STORE_PIXELS", tile.store_pixels,
      "contiguous pixels in one store of a thread; 0: TMA stores");
  add("SLAB_PIXEL_LINE", std::int64_t{tile.line_pixels()},
      "pixels in a line of results, where these are contiguous");
  add("CONSUMERS", std::int64_t{tile.consumers}, "warpgroups of a block that multiply");
  add("LEFT", std::int64_t{tile.left}, "operands A, of 64 rows each, of a warpgroup");
  add("BLOCK_RIGHT", std::int64_t{tile.right});
  add("STAGES", std::int64_t{tile.stages});
  add("SLABS", std::int64_t{tile.slabs}, "buffers of results that TMA stores, of a warpgroup");
  add("SHARED_BYTES", std::int64_t{tile.shared_memory});
  add("PRODUCER_REGISTERS", std::int64_t{registers_of(tile).producer});
  add("CONSUMER_REGISTERS", std::int64_t{registers_of(tile).consumer});
  add("FILTER_BY_CHANNELS", filter_by_channels(gather),
      "the rows of w are contiguous, not its channels");
  const Spatial& pixels = gather.phases.front().pixels;
  const bool line = std::all_of(
      gather.phases.begin(), gather.phases.end(),
      [&](const Gather::Phase& phase) { return in_line(gather.out_strides, phase.pixels); });
  add("OUT_IN_LINE", line, "one stride leads from each pixel of the output to the next");
  add("Z_IN_LINE", problem.epilogue.residual && in_line(problem.z_strides, pixels));
  add("MAPS", tile.planar ? (problem.epilogue.residual ? 4 : 3) : dense_map_count(problem, gather));
  add_dense_promotion(spec.constants,
                      gather.most_taps() * ceil_div(gather.channels, tile.lines.channels),
                      tile.lines.channels);
  add_sum_registers(spec.constants, tile.left, tile.right / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, tile.right);
}

std::vector<LaunchSpec::Map> maps_of(const DenseTile& tile, const Seen& seen) {
  if (tile.planar)
    return planar_maps(
        seen.problem, seen.gather,
        {tile.lines, tile.images, tile.rows(), tile.line_pixels(), tile.planar_slab_rows()});
  return dense_maps(
      seen.problem, seen.gather,
      {tile.lines, tile.pixels(), tile.rows(), tile.slab_pixels(), tile.result_line, tile.joined});
}

LaunchSpec launch(const DenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  DenseParams params{};
  params.images = static_cast<unsigned>(problem.batch);
  const std::int64_t rows = row_tiles(tile, seen.gather);
  std::int64_t tiles = 0;
  const std::span<const Gather::Phase> phases = phases_of(tile, seen.gather);
  for (std::size_t i = 0; i < seen.gather.phases.size(); ++i) {
    if (i < phases.size()) tiles += pixel_tiles(tile, problem.batch, phases[i]) * rows;
    params.tiles[i] = static_cast<unsigned>(tiles);
  }
  return dense_launch(params, tiles, tile.threads(), static_cast<std::uint32_t>(tile.shared_memory),
                      maps_of(tile, seen), seen);
}

void finish(Proposal& proposal, const DenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  if (problem.epilogue.moments)
    proposal = with_moments(std::move(proposal), row_parts(tile, seen), problem, seen.device);
  else if (problem.epilogue.gradient)
    proposal = with_gradient(std::move(proposal), row_parts(tile, seen), problem, seen.device);
}

template <bool planar>
constexpr Recipe<DenseTile> recipe(const char* name) {
  return {
      .name = name,
      .file = "conv/dense/dense_wgmma.cu",
      .entry = "dense_wgmma",
      .moments = !planar,
      .normalization_gradient = !planar,
      .group_strides = !planar,
      .refusal = [](const Seen& seen) { return refusal_turned(seen, refusal<planar>); },
      .lay =
          [](const Seen& seen) {
            return seen_turned(seen,
                               [](const Seen& turned) { return lay_dense_tiles(planar, turned); });
          },
      .why_no_tile = why_no_tile,
      .count = count,
      .offers = offers,
      .describe = describe,
      .threads = [](const DenseTile& tile) { return tile.threads(); },
      .shared_memory = [](const DenseTile& tile,
                          const Seen&) { return static_cast<std::uint32_t>(tile.shared_memory); },
      .write =
          [](KernelSpec& spec, const DenseTile& tile, const Seen& seen) {
            seen_turned(seen, [&](const Seen& turned) { write(spec, tile, turned); });
          },
      .launch =
          [](const KernelSpec&, const DenseTile& tile, const Seen& seen, const Sharing&) {
            return seen_turned(seen, [&](const Seen& turned) { return launch(tile, turned); });
          },
      .finish =
          [](Proposal& proposal, const DenseTile& tile, const Seen& seen, const Sharing&) {
            finish(proposal, tile, seen);
            proposal = behind_turned_filter(std::move(proposal), seen.problem);
          },
  };
}

}  // namespace

constinit const Recipe<DenseTile> dense_nhwc_wgmma = recipe<false>("dense_nhwc_wgmma");
constinit const Recipe<DenseTile> dense_nchw_wgmma = recipe<true>("dense_nchw_wgmma");

}  // namespace kiln
