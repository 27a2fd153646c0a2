#include "engines/conv/grouped/grouped_nhwc_mma.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_pixels = 128;               // of a tile
constexpr std::int64_t most_shared_memory = 96 * 1024;  // two blocks on a multiprocessor of sm_90

// The unit of channels that a warp computes: octets that hold whole groups, the taps of a step, and
// the products of a step.
struct Unit {
  std::int64_t octets, step_taps, products;
  std::int64_t step_quads() const { return step_taps / 4; }
};
Unit unit_of(std::int64_t group) {
  if (group == 2) return {1, 8, 4};
  return group == 16 ? Unit{2, 4, 8} : Unit{1, 4, 2};
}

struct Tile {
  std::int64_t p, q;    // rows and columns of output pixels
  std::int64_t octets;  // octets of channels
  std::int64_t places;  // pixels of the source's halo, in the largest phase
  std::int64_t shared_memory;

  std::int64_t warps_p() const { return ceil_div(p * q, warp_pixels); }
  std::int64_t threads() const { return 32 * warps_p() * (octets / warp_octets); }
  std::int64_t min_blocks() const { return std::max<std::int64_t>(512 / threads(), 1); }
  std::int64_t stage_bytes() const { return places * (octets + 1) * channel_vector_bytes; }
};

std::int64_t places_of(const Gather& gather, std::int64_t p, std::int64_t q) {
  std::int64_t most = 1;
  for (const Gather::Phase& phase : gather.phases) {
    if (phase.tap_count() == 0) continue;
    const auto met = [&](std::size_t i, std::int64_t pixels) {
      return (pixels - 1) * gather.stride[i] + (phase.taps[i] - 1) * std::abs(gather.step[i]) + 1;
    };
    most = std::max(most, met(1, p) * met(2, q));
  }
  return most;
}

std::int64_t steps_of(const Gather& gather) {
  return std::max<std::int64_t>(ceil_div(gather.most_taps(), unit_of(gather.rows).step_taps), 1);
}

std::int64_t tiles_of(const Gather& gather, const Tile& tile) {
  const Spatial largest = gather.largest_pixels();
  return ceil_div(largest[1], tile.p) * ceil_div(largest[2], tile.q);
}

// The tile with the lowest estimate of products and copies among those that fit in shared memory;
// none if none fits.
std::optional<Tile> tile_of(const ConvolutionProblem& problem, const Gather& gather,
                            const DeviceDescription& device) {
  const Unit unit = unit_of(gather.rows);
  const Spatial largest = gather.largest_pixels();
  const std::int64_t room =
      std::min<std::int64_t>(most_shared_memory, device.shared_memory_per_block);
  // What a tile costs relative to a product of a pixel with a tap; chosen, not measured: to store a
  // pixel, to copy a pixel of the halo, and besides; and how much more with one warp's octets.
  constexpr double store_cost = 8, copy_cost = 8, tile_cost = 256, narrow_share = 1.1;
  std::optional<Tile> best;
  double least = 0;
  for (std::int64_t octets = octets_of(problem.groups * gather.rows); octets >= warp_octets;
       octets /= 2)
    for (std::int64_t q = 1; q <= std::min(largest[2], most_pixels); ++q)
      for (std::int64_t p = 1; p <= std::min(largest[1], most_pixels / q); ++p) {
        Tile tile{p, q, octets, places_of(gather, p, q), 0};
        tile.shared_memory =
            2 * tile.stage_bytes() + octets / unit.octets * steps_of(gather) * unit.products * 256;
        if (tile.shared_memory > room) continue;
        const auto pixels = static_cast<double>(tile.warps_p() * warp_pixels);
        const double work = static_cast<double>(tiles_of(gather, tile)) *
                            (pixels * (static_cast<double>(gather.most_taps()) + store_cost) +
                             copy_cost * static_cast<double>(tile.places) + tile_cost) *
                            (octets > warp_octets ? 1.0 : narrow_share);
        if (!best || work < least) best = tile, least = work;
      }
  return best;
}

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather,
                const DeviceDescription& device) {
  if (auto refused = half_products_refusal(problem, device)) return refused;
  const std::int64_t group = gather.rows;
  if (gather.channels != group || (group != 2 && group != 4 && group != 8 && group != 16))
    return cat("groups of ", gather.channels, " input and ", group,
               " output channels; this engine takes 2, 4, 8 or 16 of both");
  return channel_vectors_refusal(problem, gather);
}

std::int64_t channel_tiles_of(const ConvolutionProblem& problem, const Gather& gather,
                              const Tile& tile) {
  return ceil_div(problem.groups * gather.rows, tile.octets * octet);
}

}  // namespace

bool GroupedNhwcMmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::variant<Proposal, Refusal> GroupedNhwcMmaEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather, device)) return refused;
  const std::optional<Tile> found = tile_of(problem, gather, device);
  if (!found)
    return Refusal{cat("the ", places_of(gather, 1, 1),
                       " source pixels under the taps of a pixel, and ", gather.most_taps(),
                       " taps of the filter, do not fit into shared memory")};
  const Tile& tile = *found;

  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/grouped/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(tile.p, "x", tile.q, " pixels x ", tile.octets * octet, " channels, ",
                  tile.threads(), " threads");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_memory);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const Spatial largest = gather.largest_pixels();
  const std::int64_t channel_tiles = channel_tiles_of(problem, gather, tile);
  add("GROUP", gather.rows, "channels of a group");
  add("GROUPS", problem.groups);
  add("ALL_CHANNELS", problem.groups * gather.rows);
  add("OCTETS", tile.octets, "octets of channels of a block");
  add("WARPS_P", tile.warps_p(), "warps of a block that take different pixels, 32 each");
  add("TILE_P", tile.p, "rows of pixels of a block");
  add("TILE_Q", tile.q);
  add("CHANNEL_TILES", channel_tiles);
  add("STAGE_BYTES", tile.stage_bytes(), "bytes of a halo");
  add("MOST_STEPS", steps_of(gather));
  add("MIN_BLOCKS", tile.min_blocks());
  add("DIV_TILES_Q", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[2], tile.q))));
  add("DIV_TILES_P", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[1], tile.p))));

  // Blocks of the same channels and phase take tiles in turn: `slots` of them.
  const std::int64_t tiles = problem.batch * tiles_of(gather, tile);
  const std::int64_t each = channel_tiles * static_cast<std::int64_t>(gather.phases.size());
  const std::int64_t resident = std::clamp<std::int64_t>(
      device.shared_memory_per_multiprocessor / (tile.shared_memory + 1024), 1, tile.min_blocks());
  const std::int64_t slots = std::clamp<std::int64_t>(resident * device.multiprocessors / each, 1,
                                                      std::max<std::int64_t>(tiles, 1));
  if (each * slots > limit32)
    return Refusal{cat(each * slots, " thread blocks; a launch has at most ", limit32)};
  Proposal out{{std::move(spec), {}}};
  out.first().launch =
      gather_launch(problem, tiles, each * slots, static_cast<std::uint32_t>(tile.threads()),
                    out.first().kernel.shared_memory);
  return out;
}

double GroupedNhwcMmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Tile tile = tile_of(problem, gather, device).value();
  const Unit unit = unit_of(gather.rows);
  // A warp, for its 32 pixels and an octet, reads four times 16 bytes per lane for every four taps,
  // and one operand B per product of 32 pixels.
  double units = 0, steps = 0, places = 0;
  for (const Gather::Phase& phase : gather.phases) {
    const auto tiles = static_cast<double>(problem.batch * ceil_div(phase.pixels[1], tile.p) *
                                           ceil_div(phase.pixels[2], tile.q) *
                                           channel_tiles_of(problem, gather, tile));
    const std::int64_t tile_units = tile.warps_p() * tile.octets / unit.octets;
    const double here = tiles * static_cast<double>(tile_units);
    units += here;
    steps += here * static_cast<double>(ceil_div(phase.tap_count(), unit.step_taps));
    if (phase.tap_count() > 0) places += tiles * static_cast<double>(tile.places * tile.octets);
  }
  GroupedWork work;
  work.products = steps * static_cast<double>(2 * unit.products);
  work.wavefronts =
      steps * static_cast<double>(16 * unit.step_quads() * unit.octets + 2 * unit.products) +
      units * static_cast<double>(32 * unit.octets) + places / 8;
  work.warps = static_cast<double>(tile.threads()) / 32;
  work.blocks = static_cast<double>(problem.batch * tiles_of(gather, tile) *
                                    channel_tiles_of(problem, gather, tile) *
                                    static_cast<std::int64_t>(gather.phases.size()));
  work.bytes = work_of(problem, false).bytes;
  return grouped_seconds(work, device);
}

}  // namespace kiln
