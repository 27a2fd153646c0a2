#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/line_store.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr int most_parts = 8;  // larger clusters are not portable, and were no faster

FragmentShape fragment_shape(const HaloMmaShape& shape) {
  return {.m = shape.m,
          .n = shape.n,
          .thread_m = shape.thread_m,
          .thread_n = shape.thread_n,
          .min_blocks = shape.min_blocks,
          .columns_left = shape.columns_left};
}

// The cost of copying one tap of the filter, in copies. Where few taps of a channel are read at a
// time and the next channel lies elsewhere, most of each memory sector is wasted: such a copy
// counts twice.
double filter_copies(const HaloMmaTile& tile, const Gather& gather) {
  constexpr int few_bytes = 16;
  const bool apart = gather.w_channel > gather.phases.front().tap_count();
  const bool few = tile.scalar_copies() && tile.tap_group * tile.element < few_bytes;
  if (tile.shape.columns_left && tile.filter_rows_inner) return 0;  // copies of words
  return static_cast<double>(tile.shape.m) * (few && apart ? 2 : 1);
}

FragmentWork work_of_tile(const ConvolutionProblem& problem, const Gather& gather,
                          const HaloMmaTile& tile, std::int64_t tiles) {
  const HaloMmaShape& shape = tile.shape;
  FragmentWork work;
  work.type = problem.type();
  work.split = is_split(problem);
  work.shape = fragment_shape(shape);
  work.shared_memory = tile.shared_memory(rows_innermost(gather));
  work.tiles = tiles;
  work.results = static_cast<double>(operands_of(problem).back().count());
  const double taps = tile.walked_taps(gather);
  const auto chunks = static_cast<double>(ceil_div(gather.channels, tile.chunk_channels()));
  work.fragments = chunks * taps * shape.chunk_steps;
  if (tile.halo_stages == 1) work.waits = chunks - 1;
  // NCHW tiles have a barrier only once for each group of taps.
  work.step_fragments = shape.chunk_steps * (tile.scalar_copies() ? 2 : 1);
  work.scalar_copies = tile.scalar_copies();
  if (tile.scalar_copies()) {
    work.stages = chunks * taps / tile.tap_group;
    work.stage_copies = 32.0 * shape.chunk_steps / tile.element * shape.m * tile.tap_group;
  }
  work.copy_bytes = work.scalar_copies ? tile.element : 16;
  const double copies = 32.0 * shape.chunk_steps / work.copy_bytes;  // bytes of a pixel or row
  work.copies = chunks * copies *
                (static_cast<double>(tile.halo_pixels()) + taps * filter_copies(tile, gather));
  if (shape.columns_left && !tile.scalar_copies()) {
    work.left_matrix_steps = chunks * taps;
    if (tile.filter_rows_inner)
      work.word_copies = chunks * taps * shape.m * static_cast<double>(tile.chunk_channels());
  }
  work.transposed = tile.filter_rows_inner;
  work.scattered = gather.out_strides[1] != 1 && gather.out_strides[4] != 1;
  work.bytes = work_of(problem, false).bytes;
  return work;
}

}  // namespace

namespace halo {

void lay(std::vector<HaloMmaTile>& tiles, std::span<const HaloMmaShape> shapes, int tap_group,
         const Seen& seen) {
  const std::int64_t rows = seen.gather.phases.front().pixels[1];
  for (const HaloMmaShape& shape : shapes) {
    const auto tile = lay_halo_tile(shape, seen.gather, tap_group, seen.device);
    if (!tile) continue;
    const std::int64_t most_images = shape.n / (rows * tile->strip) + 2;
    if (narrow_offsets(seen, shape.m, tile->chunk_channels(), most_images)) tiles.push_back(*tile);
  }
}

TileCounts count(const HaloMmaTile& tile, const Seen& seen) {
  const std::int64_t strip_pixels = seen.gather.phases.front().pixels[1] * tile.strip;
  const std::int64_t of_pixels =
      ceil_div(seen.problem.batch * strip_pixels, tile.shape.n) * tile.strips;
  return {of_pixels, of_pixels * seen.gather.groups * ceil_div(seen.gather.rows, tile.shape.m)};
}

std::vector<Offer> offers(const HaloMmaTile& tile, const Seen& seen, const TileCounts& tiles) {
  const FragmentWork work = work_of_tile(seen.problem, seen.gather, tile, tiles.all);
  const double groups = work.fragments / (tile.shape.chunk_steps * tile.tap_group);
  std::vector<Offer> out;
  for (const int parts : parts_of(seen.device, groups, most_parts))
    out.push_back({{parts},
                   tile.shape.columns_left ? warpgroup_fragment_seconds(work, parts, seen.device)
                                           : fragment_seconds(work, parts, seen.device)});
  return out;
}

void write(KernelSpec& spec, const HaloMmaTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const HaloMmaShape& shape = tile.shape;
  const Gather::Phase& phase = gather.phases.front();
  if (!tile.scalar_copies()) spec.alignment = copied_bytes;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("offset_t", TypeName{"int"});
  add("out_offset_t", TypeName{"int"});

  const int run_m = shape.columns_left       ? 2
                    : tile.filter_rows_inner ? (tile.element == 2         ? 1
                                                : shape.thread_m % 4 == 0 ? 4
                                                                          : 2)
                    : tile.staged            ? 1
                                             : rows_side_by_side(gather, shape.thread_m);
  const int run_n = shape.columns_left ? 1 : 2;
  add_fragment_constants(spec.constants, fragment_shape(shape), problem, run_m, run_n);
  if (shape.columns_left) add_warpgroup_instruction(spec.constants, shape.m);
  add("STAGES", std::int64_t{shape.stages}, "stages of the filter in shared memory");
  add("CHUNK_STEPS", std::int64_t{shape.chunk_steps},
      "fragments, 32 bytes of channels each, in a chunk");
  add("TAP_GROUP", std::int64_t{tile.tap_group}, "taps in a stage of the filter");
  add("FILTER_ROWS_INNER", tile.filter_rows_inner);
  add("FILTER_PAD", transposed_pad(tile.element), "bytes of padding of a line of the filter");
  add("STAGED_STORE", tile.staged, "all sums are stored together, through shared memory");
  if (tile.staged) {
    add_staged_store_constants(spec.constants, problem, gather);
  } else {
    add_line_store_constants(spec.constants, problem, gather, tile.strip, run_m, run_n);
    add("STORE_VECTOR", std::int64_t{1}, "rows in one store");
  }

  const std::int64_t reduction = gather.channels * gather.most_taps();
  add_split_constants(spec.constants, is_split(problem), reduction, !tile.scalar_copies());
  add_checked_constant(spec.constants, problem, true, tile.scalar_copies());
  add_promotion_constants(spec.constants, problem, reduction, reduction, shape.chunk_steps);

  add("STRIP", tile.strip, "columns of pixels of a strip");
  add("WHOLE_STRIPS", tile.strip * tile.strips == phase.pixels[2]);
  add("IMAGE_ROWS", tile.image_rows, "source rows that an image's pixels read, padding included");
  add("HALO_ROWS", tile.halo_rows);
  add("HALO_COLUMNS", tile.halo_columns);
  add("HALO_STAGES", std::int64_t{tile.halo_stages});
  add("LEAST_TAPS", std::int64_t{tile.least_taps});
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});
  const auto divisor = [&](const char* name, std::int64_t value, std::int64_t most) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(most)));
  };
  const std::int64_t strip_pixels = phase.pixels[1] * tile.strip;
  divisor("DIV_TILES_M", ceil_div(gather.rows, shape.m), limit32);
  divisor("DIV_GROUPS", gather.groups, limit32);
  divisor("DIV_STRIPS", tile.strips, limit32);
  add("BLOCK_DIV_STRIP_PIXELS", make_wide_magic(static_cast<std::uint64_t>(strip_pixels)));
  divisor("DIV_STRIP_PIXELS", strip_pixels, strip_pixels + 2 * shape.n);
  divisor("DIV_STRIP", tile.strip, strip_pixels + 2 * shape.n);
}

}  // namespace halo
}  // namespace kiln
