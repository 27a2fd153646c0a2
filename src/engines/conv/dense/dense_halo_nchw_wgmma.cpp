#include "engines/conv/dense/dense_halo_nchw_wgmma.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/planar_source.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

constexpr PlanarPatch all_patches[] = {
    {.consumers = 2, .left = 1, .right = 256},
    {.consumers = 2, .left = 1, .right = 240},
    {.consumers = 2, .left = 1, .right = 224},
    {.consumers = 2, .left = 1, .right = 192},
    {.consumers = 2, .left = 1, .right = 160},
    {.consumers = 2, .left = 1, .right = 128},
    {.consumers = 2, .left = 1, .right = 96},
    {.consumers = 2, .left = 1, .right = 64},
    {.consumers = 3, .left = 1, .right = 192},
    {.consumers = 3, .left = 1, .right = 160},
    {.consumers = 3, .left = 1, .right = 128},
    {.consumers = 2, .left = 2, .right = 128},
    {.consumers = 1, .left = 1, .right = 256},
    {.consumers = 1, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 256},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 192},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 160},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 96},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 64},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 48},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 32},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 16},
};
constexpr int all_lines[] = {64, 32, 16};  // swizzles of 128, 64 and 32 bytes

constexpr int element = 2;  // bytes
constexpr int most_shared_memory = 227 * 1024;
constexpr int most_filter_slots = 8, least_filter_slots = 3, most_halo_slots = 4;
// Longer sums need promotion (add_dense_promotion), which this engine does not do.
constexpr std::int64_t most_products = 16384;

int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
int filter_pitch(const PlanarPatch& patch) {
  return whole_swizzles(patch.rows() * patch.step_channels * element);
}
int halo_pitch(const PlanarPatch& patch) {
  return whole_swizzles(patch.halo_rows * patch.step_channels * patch.line * element);
}
int slab_bytes(const PlanarPatch& patch) {
  return whole_swizzles((patch.pixels_left ? 64 : patch.line) * patch.slab_rows() * element);
}

// Bytes of the edges of a halo, and how many the kernel has room for.
int edge_pitch(const PlanarPatch& patch) {
  return patch.edges * patch.halo_rows * patch.step_channels * 16;
}
int edge_slots(const PlanarPatch& patch, int columns) {
  return patch.center < 0 ? 0 : static_cast<int>(ceil_div(patch.halo_slots, columns));
}

// The distance in pixels from a result to what column `s` of the filter reads for it.
std::int64_t apart(const Gather& gather, std::int64_t s) {
  return dense_phase(gather, gather.phases.front()).lower[0] + s * std::abs(gather.step[2]);
}
constexpr std::int64_t vector = 16 / element;  // pixels; copies begin at multiples of it

bool shifts_columns(const Gather& gather) {
  for (std::int64_t s = 0; s < gather.phases.front().taps[2]; ++s)
    if (apart(gather, s) % vector != 0) return true;
  return false;
}

// The column of the filter whose halos, shifted by up to 8 pixels, are those of the other columns;
// -1 if there is none.
std::int64_t center_of(const Gather& gather) {
  const std::int64_t last = gather.phases.front().taps[2] - 1;
  for (std::int64_t s = 0; s <= last; ++s)
    if (const std::int64_t at = apart(gather, s);
        at % vector == 0 && at - apart(gather, 0) <= vector && apart(gather, last) - at <= vector)
      return s;
  return -1;
}

// Sets the slots of both rings: as many as fit. A halo of several taps lasts for as many slots of
// the filter.
void lay_slots(PlanarPatch& patch, int columns) {
  const int filter = filter_pitch(patch), halo = halo_pitch(patch);
  const auto fixed = [&] {
    return 8 * (2 * patch.filter_slots + 2 * patch.halo_slots + patch.consumers) +
           edge_slots(patch, columns) * edge_pitch(patch) +
           patch.consumers * patch.slabs * slab_bytes(patch);
  };
  constexpr int enough = 5;  // slots of the filter, before a halo more is better
  const bool shifted = patch.center >= 0;
  const int least = shifted ? columns : 2, most = shifted ? columns + 2 : most_halo_slots;
  patch.filter_slots = patch.halo_slots = most_filter_slots;
  if (patch.halo_taps == 1 && !shifted) {
    patch.filter_slots = patch.halo_slots =
        std::min((most_shared_memory - fixed()) / (filter + halo), most_filter_slots);
  } else {
    patch.filter_slots = 0;
    for (patch.halo_slots = most; patch.halo_slots >= least; --patch.halo_slots) {
      const int room = most_shared_memory - fixed() - 16 * most_filter_slots;
      patch.filter_slots =
          std::min(std::max(room - patch.halo_slots * halo, 0) / filter, most_filter_slots);
      if (patch.filter_slots >= enough || patch.halo_slots == least) break;
    }
  }
  patch.shared_memory = patch.filter_slots * filter + patch.halo_slots * halo + fixed();
}

PlanarPatch lay(PlanarPatch patch, int line, const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  patch.line = line;
  patch.slabs = 2;
  if (shifts_columns(gather)) {
    const std::int64_t center = center_of(gather);
    patch.center = static_cast<int>(center);
    patch.edges = (center > 0 ? 1 : 0) + (center + 1 < taps[2] ? 1 : 0);
  }
  const auto rows_of = [&](std::int64_t halo_taps) {
    return static_cast<int>((patch.patch_rows() - 1) * gather.stride[1] +
                            (halo_taps - 1) * std::abs(gather.step[1]) + 1);
  };
  for (const std::int64_t halo_taps : {taps[1], std::int64_t{1}})
    for (const int channels : {64, 32, 16}) {
      // Fewer channels than 64 are of use where shifted halos of more do not fit.
      if (channels > 16 && gather.channels <= channels / 2) continue;
      if (channels < 64 && gather.channels > channels && patch.center < 0) continue;
      patch.step_channels = channels;
      patch.halo_taps = static_cast<int>(halo_taps);
      patch.halo_rows = rows_of(halo_taps);
      // A halo with more rows than its taps read is not worth it.
      if (halo_taps > 1 && patch.halo_rows >= patch.patch_rows() * halo_taps) continue;
      if (patch.halo_rows > 256) continue;
      lay_slots(patch, static_cast<int>(taps[2]));
      if (patch.filter_slots >= least_filter_slots) return patch;
    }
  patch.filter_slots = 0;
  return patch;
}

std::int64_t columns_of(int line, const Gather& gather) {
  return round_up(gather.phases.front().pixels[2], line);
}

// Shorter lines take as long to copy as long ones, so only those that waste fewer columns are of
// use.
bool is_useful(int line, const Gather& gather) {
  return std::ranges::none_of(all_lines, [&](int other) {
    return other > line && columns_of(other, gather) <= columns_of(line, gather);
  });
}

bool suits(const PlanarPatch& patch, const Gather& gather) {
  return patch.rows() < 2 * round_up(gather.rows, patch.pixels_left ? 16 : 64);
}

std::int64_t summed(const Gather& gather) { return gather.most_taps() * gather.channels; }

DensePlanarWork work_of_image(const PlanarPatch& patch, const Gather& gather) {
  const Spatial& pixels = gather.phases.front().pixels;
  const Spatial& taps = gather.phases.front().taps;
  std::int64_t live = 0;  // taps in depth whose plane exists, of all planes; each visits one
  for (std::int64_t o = 0; o < pixels[0]; ++o)
    live += std::max<std::int64_t>(gather.live_taps(0, o, o), 1);
  const std::int64_t steps = ceil_div(gather.channels, patch.step_channels);
  DensePlanarWork work;
  work.pixels_left = patch.pixels_left;
  work.pixels = patch.pixels(), work.rows = patch.rows(), work.line = patch.line;
  work.warpgroups = patch.consumers;
  work.columns = patch.center < 0 ? 1 : static_cast<int>(taps[2]);
  const std::int64_t halos_of_plane =
      steps * (taps[1] / patch.halo_taps) * (taps[2] / work.columns);
  work.halos = static_cast<double>(live * halos_of_plane) / static_cast<double>(pixels[0]);
  work.spare_halos = patch.halo_slots - work.columns;
  work.halo_lines = static_cast<double>(patch.halo_rows) * patch.step_channels;
  work.edges = patch.edges;
  work.steps = patch.halo_taps;
  work.filter_lines = filter_by_channels(gather) ? static_cast<double>(patch.rows()) /
                                                       patch.row_line() * patch.step_channels
                                                 : patch.rows();
  work.step_products =
      static_cast<double>(round_up(gather.channels, 16)) / static_cast<double>(steps);
  work.filter_bytes = static_cast<double>(gather.rows * summed(gather) * element);
  return work;
}

std::vector<PlanarPatch> lay_all(const Seen& seen) {
  const Spatial& pixels = seen.gather.phases.front().pixels;
  std::vector<PlanarPatch> patches;
  for (const PlanarPatch& patch : all_patches)
    for (const int line : all_lines) {
      if (!suits(patch, seen.gather) || !is_useful(line, seen.gather)) continue;
      if (patch.pixels() % line != 0 || (patch.pixels_left && line != 64)) continue;
      PlanarPatch laid = lay(patch, line, seen.gather);
      if (laid.filter_slots < least_filter_slots) continue;
      laid.image_tiles = pixels[0] * ceil_div(pixels[1], laid.patch_rows()) *
                         ceil_div(pixels[2], laid.line) * ceil_div(seen.gather.rows, laid.rows());
      laid.work = work_of_image(laid, seen.gather);
      patches.push_back(laid);
    }
  return patches;
}

TileCounts count(const PlanarPatch& patch, const Seen& seen) {
  const std::int64_t tiles = seen.problem.batch * patch.image_tiles;
  return {tiles, tiles};
}

std::vector<Offer> offers(const PlanarPatch& patch, const Seen& seen, const TileCounts& tiles) {
  DensePlanarWork work = patch.work;
  work.tiles = tiles.all;
  work.bytes = work_of(seen.problem, false).bytes;
  Offer only;
  only.seconds =
      dense_planar_seconds(work, seen.device) + copied_filter_seconds(seen.problem, seen.device);
  only.workspace = copied_filter_bytes(seen.problem);
  return {only};
}

std::string describe(const PlanarPatch& patch) {
  return cat(patch.rows(), "x", patch.pixels(), patch.pixels_left ? ", pixels" : ", filters",
             " left, patches of ", patch.line, "x", patch.patch_rows(), ", ", patch.threads(),
             " threads, ", patch.halo_slots, " halos of ", patch.halo_taps, ", ",
             patch.filter_slots, " stages of the filter");
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  if (size_of(problem.type()) != 2)
    return cat("the data type is ", name_of(problem.type()), "; this engine takes f16 and bf16");
  if (auto refused = dense_product_refusal(problem, gather, seen.device)) return refused;
  if (gather.groups > 1) return cat(gather.groups, " groups; expected one");
  if (gather.phases.size() > 1) return "a data gradient with a stride; this engine takes stride 1";
  const Gather::Phase& phase = gather.phases.front();
  if (gather.stride[2] != 1) return cat("the width's stride is ", gather.stride[2], "; expected 1");
  if (phase.tap_count() <= 1) return "the filter has one tap; expected several";
  if (shifts_columns(gather) && center_of(gather) < 0)
    return cat(
        "the columns of the filter read the source at distances of ", apart(gather, 0), " to ",
        apart(gather, phase.taps[2] - 1),
        " pixels; expected one at a multiple of 8, and the others at most 8 from it, because "
        "copies begin at multiples of 16 bytes");
  if (summed(gather) > most_products)
    return cat("each output is a sum of ", summed(gather), " products; expected at most ",
               most_products, ", because the tensor cores round sums toward zero");
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  for (const auto& [tensor, strides, pixels] :
       {std::tuple(dgrad ? "dy" : "x", gather.source_strides, gather.source),
        {dgrad ? "dx" : "y", gather.out_strides, phase.pixels},
        {"z", problem.epilogue.residual ? problem.z_strides : gather.out_strides, phase.pixels}})
    if (auto refused = planar_rows_refusal(tensor, strides, pixels, problem.type())) return refused;
  return {};
}

Refusal tile_refusal(const PlanarPatch& patch, const Seen& seen, const Sharing& /*sharing*/) {
  if (const std::int64_t tiles = count(patch, seen).all; tiles > limit32 / 2)
    return cat(tiles, " tiles; expected at most ", limit32 / 2);
  return {};
}

void write(KernelSpec& spec, const PlanarPatch& patch, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  spec.alignment = 16;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const DensePhase places = dense_phase(gather, gather.phases.front());
  add("LOWER_W", std::vector<std::int64_t>{places.lower[0]});
  add("LOWER_H", std::vector<std::int64_t>{places.lower[1]});
  add("LOWER_D", std::vector<std::int64_t>{places.lower[2]});
  add_dense_space(spec.constants, gather);
  add("GROUPS", problem.groups, "groups of channels");
  add("MAY_LACK_TAPS", false);
  add("PIXELS_LEFT", patch.pixels_left);
  add("CONSUMERS", std::int64_t{patch.consumers}, "warpgroups of a block that multiply");
  add("LEFT", std::int64_t{patch.left}, "operands A, of 64 rows each, of a warpgroup");
  add("BLOCK_RIGHT", std::int64_t{patch.right});
  add("PIXEL_LINE", std::int64_t{patch.line}, "pixels of a channel in a line of shared memory");
  add("STEP_CHANNELS", std::int64_t{patch.step_channels}, "channels of a step of the reduction");
  add("ROW_LINE", std::int64_t{patch.row_line()}, "rows of the filter in a line of shared memory");
  add("HALO_TAPS", std::int64_t{patch.halo_taps}, "taps of a column that read the same halo");
  add("SHIFTED", patch.center >= 0, "halos of other columns are shifted ones of CENTER_TAP's");
  add("CENTER_TAP", std::int64_t{std::max(patch.center, 0)});
  add("HALO_SLOTS", std::int64_t{patch.halo_slots});
  add("FILTER_SLOTS", std::int64_t{patch.filter_slots});
  add("SLABS", std::int64_t{patch.slabs}, "buffers of results that TMA stores, of a warpgroup");
  add("SHARED_BYTES", std::int64_t{patch.shared_memory});
  add("PRODUCER_REGISTERS", std::int64_t{56}, "those that shift halos spill with fewer");
  add("CONSUMER_REGISTERS", std::int64_t{patch.consumers == 3 ? 152 : 224});
  add("FILTER_BY_CHANNELS", filter_by_channels(gather),
      "the rows of w are contiguous, not its channels");
  add("MAPS", std::int64_t{3} + (problem.epilogue.residual ? 1 : 0) + (patch.center >= 0 ? 1 : 0));
  add_dense_promotion(spec.constants, 0, patch.step_channels);
  add_sum_registers(spec.constants, patch.left, patch.right / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, patch.right);
}

std::vector<LaunchSpec::Map> maps_of(const PlanarPatch& patch, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const int space = dense_space(gather);
  DenseMaps maps(problem);
  maps.add(planar_rows_map(problem, space, gather.channels, gather.source, gather.source_strides,
                           {patch.line, patch.step_channels, patch.halo_rows}),
           maps.source(), 0);
  maps.add(dense_filter_map(problem, gather, phase, {patch.step_channels, patch.row_line()},
                            patch.rows()),
           "w", phase.w_first);
  const auto add_results = [&](const char* name, const Dims& strides) {
    maps.add(planar_rows_map(problem, space, gather.rows, phase.pixels, strides,
                             {patch.line, patch.slab_rows(), 1}),
             name, 0);
  };
  add_results(maps.result(), gather.out_strides);
  if (problem.epilogue.residual) add_results("z", problem.z_strides);
  if (patch.center >= 0) {
    TensorMapSpec edges =
        planar_rows_map(problem, space, gather.channels, gather.source, gather.source_strides,
                        {vector, patch.step_channels, patch.halo_rows});
    edges.swizzled = false;
    maps.add(edges, maps.source(), 0);
  }
  return std::move(maps.all);
}

LaunchSpec launch(const PlanarPatch& patch, const Seen& seen) {
  const std::int64_t tiles = count(patch, seen).all;
  DenseParams params{};
  params.tiles[0] = static_cast<unsigned>(tiles);
  return dense_launch(params, tiles, patch.threads(),
                      static_cast<std::uint32_t>(patch.shared_memory), maps_of(patch, seen), seen);
}

}  // namespace

constinit const Recipe<PlanarPatch> dense_halo_nchw_wgmma = {
    .name = "dense_halo_nchw_wgmma",
    .file = "conv/dense/dense_halo_nchw_wgmma.cu",
    .refusal =
        [](const Seen& seen) {
          if (auto refused = seen_planar(seen, refusal)) return refused;
          return copied_filter_refusal(seen.problem);
        },
    .lay = [](const Seen& seen) { return seen_planar(seen, lay_all); },
    .no_tile = "the halo of no patch fits into shared memory",
    .tile_refusal = tile_refusal,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = [](const PlanarPatch& patch) { return patch.threads(); },
    .shared_memory = [](const PlanarPatch& patch,
                        const Seen&) { return static_cast<std::uint32_t>(patch.shared_memory); },
    .write =
        [](KernelSpec& spec, const PlanarPatch& patch, const Seen& seen) {
          seen_planar(seen, [&](const Seen& planar) { write(spec, patch, planar); });
        },
    .launch =
        [](const KernelSpec&, const PlanarPatch& patch, const Seen& seen, const Sharing&) {
          return seen_planar(seen, [&](const Seen& planar) { return launch(patch, planar); });
        },
    .finish =
        [](Proposal& proposal, const PlanarPatch&, const Seen& seen, const Sharing&) {
          proposal = behind_copied_filter(std::move(proposal), seen.problem);
        },
};

}  // namespace kiln
