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

WarpgroupWork work_of_tile(const ConvolutionProblem& problem, const Gather& gather,
                           const HaloWgmmaTile& tile, std::int64_t tiles) {
  WarpgroupWork work;
  work.type = problem.type();
  work.m = tile.shape.m;
  work.n = tile.shape.n;
  work.threads = tile.shape.threads();
  work.shared_memory = tile.shared_memory(rows_innermost(gather));
  work.tiles = tiles;
  work.results = static_cast<double>(operands_of(problem).back().count());
  const auto chunks = static_cast<double>(ceil_div(gather.channels, tile.chunk_channels()));
  work.steps = chunks * tile.live_taps;
  work.step_fragments = tile.shape.chunk_steps;
  work.split = tile.shape.split;
  const double copied = chunks * static_cast<double>(tile.chunk_bytes());
  work.halo_bytes = copied * static_cast<double>(tile.halo_pixels);
  work.filter_bytes = copied * tile.live_taps * tile.shape.m;
  if (tile.scalar_copies()) {
    work.groups = work.steps / tile.tap_group;
    work.halos = chunks;
    work.halo_run = static_cast<double>(tile.halo_columns);
  }
  work.bytes = work_of(problem, false).bytes;
  return work;
}

}  // namespace

namespace halo {

Refusal wgmma_refusal(const Seen& seen) {
  if (auto refused = warpgroup_refusal(seen.device)) return refused;
  if (auto refused = matrices_refusal(seen.problem)) return refused;
  if (auto refused = halo_refusal(seen)) return refused;
  for (const int i : {1, 2})
    if (seen.gather.stride[i] != 1)
      return cat("a stride is ", seen.gather.stride[i], "; expected 1");
  return {};
}

void lay(std::vector<HaloWgmmaTile>& tiles, std::span<const HaloWgmmaShape> shapes, int tap_group,
         const Seen& seen) {
  for (const HaloWgmmaShape& shape : shapes) {
    const auto tile = lay_line_tile(shape, seen.gather, tap_group, seen.device);
    if (!tile || tile->places() > limit32 / 2) continue;
    const std::int64_t most_images = (shape.n + tile->halo_pixels) / tile->places() + 2;
    if (narrow_offsets(seen, shape.m, tile->chunk_channels(), most_images)) tiles.push_back(*tile);
  }
}

TileCounts count(const HaloWgmmaTile& tile, const Seen& seen) {
  const std::int64_t batch = seen.problem.batch;
  const std::int64_t of_pixels = tile.shape.strips > 0
                                     ? batch * (tile.places() / tile.shape.n)
                                     : ceil_div(batch * tile.places(), tile.shape.n);
  return {of_pixels, of_pixels * seen.gather.groups * ceil_div(seen.gather.rows, tile.shape.m)};
}

std::vector<Offer> offers(const HaloWgmmaTile& tile, const Seen& seen, const TileCounts& tiles) {
  const WarpgroupWork work = work_of_tile(seen.problem, seen.gather, tile, tiles.all);
  std::vector<Offer> out;
  for (const int parts : parts_of(seen.device, work.steps / tile.tap_group, most_parts))
    out.push_back({{parts}, warpgroup_seconds(work, parts, seen.device)});
  return out;
}

void write(KernelSpec& spec, const HaloWgmmaTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const HaloWgmmaShape& shape = tile.shape;
  if (!tile.scalar_copies()) spec.alignment = copied_bytes;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("offset_t", TypeName{"int"});
  add("out_offset_t", TypeName{"int"});

  // A warp has 16 rows of all columns of its warpgroup.
  const int run_m = tile.filter_rows_inner && tile.element == 4 ? 2 : 1;
  const FragmentShape fragments{.m = shape.m,
                                .n = shape.n,
                                .thread_m = 2,
                                .thread_n = shape.n / shape.groups_n / 4,
                                .min_blocks = shape.min_blocks};
  add_fragment_constants(spec.constants, fragments, problem, run_m);
  add("STAGES", std::int64_t{shape.stages}, "stages of the filter in shared memory");
  add("CHUNK_STEPS", std::int64_t{shape.chunk_steps},
      "fragments, 32 bytes of channels each, in a chunk");
  add("TAP_GROUP", std::int64_t{tile.tap_group}, "taps in a stage of the filter");
  add("FILTER_ROWS_INNER", tile.filter_rows_inner);
  add("FILTER_PAD", transposed_pad(tile.element), "bytes of padding of a line of the filter");
  add("FILTER_PLANE", tile.filter_plane(),
      "rows of 16 bytes from one plane of the filter to the next, or 0");
  add_staged_store_constants(spec.constants, problem, gather);

  const std::int64_t reduction = gather.channels * gather.most_taps();
  add_split_constants(spec.constants, is_split(problem), reduction);
  add_checked_constant(spec.constants, problem, true, tile.scalar_copies());
  add_promotion_constants(spec.constants, problem, reduction, reduction, shape.chunk_steps);

  add("STRIPS", std::int64_t{shape.strips},
      "adjacent strips of 8 columns in a tile; 0: a tile is a run of a line");
  add("LINE_ROWS", tile.rows,
      "rows of an image in the line of all pixels, gaps between images included");
  add("LINE_COLUMNS", tile.columns);
  add("HALO_PLANE", tile.plane_pixels(),
      "pixels from one plane of 16 bytes of channels to the next");
  add("HALO_STAGES", std::int64_t{tile.halo_stages});
  add("LEAST_TAPS", std::int64_t{tile.least_taps});
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  divisor("DIV_TILES_M", ceil_div(gather.rows, shape.m));
  divisor("DIV_GROUPS", gather.groups);
  divisor("DIV_STRIPS", shape.strips > 0 ? tile.strips() : 1);
  divisor("DIV_IMAGE_TILES", shape.strips > 0 ? tile.places() / shape.n : 1);
  add("BLOCK_DIV_IMAGE_PLACES", make_wide_magic(static_cast<std::uint64_t>(tile.places())));
  add_warpgroup_instruction(spec.constants, shape.n / shape.groups_n);
}

}  // namespace halo
}  // namespace kiln
