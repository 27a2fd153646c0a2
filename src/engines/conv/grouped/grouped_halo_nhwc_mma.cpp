#include "engines/conv/grouped/grouped_halo_nhwc_mma.hpp"

#include <algorithm>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr GroupedHaloTile all_tiles[] = {
    {16, 16, 8, 2}, {8, 16, 8, 2},  {4, 32, 8, 2},  {8, 32, 8, 2}, {4, 64, 8, 2},
    {16, 16, 4, 4}, {8, 32, 4, 4},  {16, 32, 4, 4}, {4, 64, 4, 4}, {8, 64, 4, 4},
    {16, 16, 2, 8}, {16, 32, 2, 8}, {8, 64, 2, 8},
};

constexpr std::int64_t unit = 16, unit_octets = 2;  // channels of a warp
constexpr std::int64_t block_rows = 2, block_columns = 8, swizzle_lines = 8;
constexpr std::int64_t most_box = 256, most_stages = 3;
constexpr std::int64_t most_resident = 2;  // blocks of 256 threads, of 128 registers each
constexpr std::int64_t most_filter_registers = 64;
constexpr std::int64_t block_shared_memory = 1024;  // that the driver takes for each block

// Products of a block of 16 pixels by 16 channels: steps, and products of each.
std::int64_t steps_of(const Gather& gather) {
  return ceil_div(gather.most_taps() * gather.rows, unit);
}
std::int64_t step_products(const Gather& gather) { return gather.rows == 4 ? 4 : 2; }

// A tile laid on a problem.
struct Layout {
  GroupedHaloTile tile{};
  std::int64_t tiles_p = 0, tiles_q = 0;  // of an image
  std::int64_t channel_tiles = 0;
  std::int64_t halo_rows = 0, halo_columns = 0;
  std::int64_t stage_bytes = 0, stages = 0, shared_memory = 0, resident = 0;

  std::int64_t threads() const { return 32 * tile.octets / unit_octets * tile.slices; }
  std::int64_t pixel_bytes() const { return tile.octets * channel_vector_bytes; }
  std::int64_t halo_bytes() const { return halo_rows * halo_columns * pixel_bytes(); }
};

std::optional<Layout> lay(const GroupedHaloTile& wanted, const ConvolutionProblem& problem,
                          const Gather& gather, const DeviceDescription& device) {
  const Spatial& pixels = gather.phases.front().pixels;
  Layout out;
  out.tile = wanted;
  out.tiles_p = ceil_div(pixels[1], wanted.p);
  out.tiles_q = ceil_div(pixels[2], wanted.q);
  out.tile.p = round_up(ceil_div(pixels[1], out.tiles_p), block_rows);
  out.tile.q = round_up(ceil_div(pixels[2], out.tiles_q), block_columns);
  out.channel_tiles = ceil_div(problem.groups * gather.rows, out.tile.octets * octet);
  out.halo_rows = places_met(gather, 1, out.tile.p);
  // Columns beyond the image's last one may read whatever follows.
  const std::int64_t columns = places_met(gather, 2, out.tile.q);
  const std::int64_t needed = places_met(gather, 2, std::min(out.tile.q, pixels[2]));
  // With groups of 4, lanes beside each other read taps of two rows, which half the swizzle keeps
  // from meeting in the same banks.
  const std::int64_t apart = gather.rows == 4 ? swizzle_lines / 2 : 0;
  out.halo_columns = round_up(needed + apart, swizzle_lines) - apart;
  if (out.halo_rows > most_box || out.halo_columns > most_box) return std::nullopt;
  constexpr std::int64_t whole_swizzle = 1024;
  const std::int64_t beyond = std::max<std::int64_t>(columns - out.halo_columns, 0);
  out.stage_bytes = round_up(out.halo_bytes() + beyond * out.pixel_bytes(), whole_swizzle);
  for (out.stages = most_stages; out.stages >= 2; --out.stages) {
    out.shared_memory = out.stages * out.stage_bytes + channel_vector_bytes + out.stages * 8;
    if (out.shared_memory > device.shared_memory_per_block) continue;
    out.resident = std::min(most_resident, device.shared_memory_per_multiprocessor /
                                               (out.shared_memory + block_shared_memory));
    if (out.resident == most_resident || out.stages == 2) break;
  }
  if (out.stages < 2 || out.resident < 1) return std::nullopt;
  return out;
}

std::int64_t pixel_tiles(const ConvolutionProblem& problem, const Layout& layout) {
  return problem.batch * layout.tiles_p * layout.tiles_q;
}

// Blocks for one tile of channels.
std::int64_t blocks_of(const ConvolutionProblem& problem, const Layout& layout,
                       const DeviceDescription& device) {
  return blocks_in_turn(pixel_tiles(problem, layout),
                        layout.resident * device.multiprocessors / layout.channel_tiles);
}

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather,
                const DeviceDescription& device) {
  if (auto refused = half_products_refusal(problem, device)) return refused;
  if (gather.channels != gather.rows || (gather.rows != 4 && gather.rows != 8 && gather.rows != 16))
    return cat("groups of ", gather.channels, " input and ", gather.rows,
               " output channels; this engine takes 4, 8 or 16 of both");
  if (auto refused = plane_refusal(gather)) return refused;
  if (auto refused = channel_vectors_refusal(problem, gather)) return refused;
  if (2 * step_products(gather) * steps_of(gather) > most_filter_registers)
    return cat(gather.most_taps(), " taps; the filter would not fit into registers");
  return boxes_refusal(device);
}

double seconds(const ConvolutionProblem& problem, const Gather& gather, const Layout& layout,
               const DeviceDescription& device) {
  GroupedHaloWork work;
  const double warp_blocks = static_cast<double>(
      ceil_div(layout.tile.p / block_rows * (layout.tile.q / block_columns), layout.tile.slices));
  // A step reads one operand A, or one for each product; it has four wavefronts.
  const std::int64_t reads = gather.rows == unit ? 1 : step_products(gather);
  work.wavefronts = warp_blocks * static_cast<double>(4 * reads * steps_of(gather));
  work.products = warp_blocks * static_cast<double>(step_products(gather) * steps_of(gather));
  work.warps = static_cast<double>(layout.threads()) / 32;
  work.lines = static_cast<double>(layout.halo_rows * layout.halo_columns);
  work.line_bytes = static_cast<double>(layout.pixel_bytes());
  work.resident = static_cast<double>(layout.resident);
  const std::int64_t blocks = blocks_of(problem, layout, device);
  work.tiles = static_cast<double>(
      ceil_div(std::max<std::int64_t>(pixel_tiles(problem, layout), 1), blocks));
  work.blocks = static_cast<double>(blocks * layout.channel_tiles);
  work.bytes = work_of(problem, false).bytes;
  return grouped_halo_seconds(work, device);
}

}  // namespace

std::span<const GroupedHaloTile> GroupedHaloNhwcMmaEngine::tiles() { return all_tiles; }

bool GroupedHaloNhwcMmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::variant<std::vector<Candidate>, Refusal> GroupedHaloNhwcMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather, device)) return refused;
  std::vector<Candidate> out;
  std::vector<GroupedHaloTile> laid;  // small images make several tiles the same
  for (std::size_t i = 0; i < std::size(all_tiles); ++i) {
    const std::optional<Layout> layout = lay(all_tiles[i], problem, gather, device);
    if (!layout || pixel_tiles(problem, *layout) > limit32 / 2 ||
        std::ranges::find(laid, layout->tile) != laid.end())
      continue;
    laid.push_back(layout->tile);
    out.push_back({static_cast<int>(i), 1, seconds(problem, gather, *layout, device)});
  }
  if (out.empty()) return Refusal{"the halo of no tile fits into shared memory"};
  return out;
}

Proposal GroupedHaloNhwcMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                        Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(all_tiles[candidate.kernel], problem, gather, device).value();
  const GroupedHaloTile& tile = layout.tile;
  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/grouped/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(tile.p, "x", tile.q, " pixels x ", tile.octets * octet, " channels, ",
                  layout.threads(), " threads, ", layout.stages, " stages");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(layout.shared_memory);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("GROUP", gather.rows, "channels of a group");
  add("GROUPS", problem.groups);
  add("ALL_CHANNELS", problem.groups * gather.rows);
  add("OCTETS", tile.octets, "octets of channels of a block");
  add("SLICES", tile.slices, "warps that share the pixels");
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("TILE_Q", tile.q);
  add("TILES_P", layout.tiles_p, "tiles down an image");
  add("TILES_Q", layout.tiles_q);
  add("CHANNEL_TILES", layout.channel_tiles);
  add("HALO_W", layout.halo_columns, "columns of a halo");
  add("STAGE_BYTES", layout.stage_bytes, "bytes of a halo and of what is read beyond it");
  add("STAGES", layout.stages, "halos in shared memory");
  add("MIN_BLOCKS", layout.resident);
  add("SHARED_BYTES", layout.shared_memory);

  Proposal out{{std::move(spec), {}}};
  out.first().launch = boxed_gather_launch(
      problem, gather, {tile.octets * octet, layout.halo_columns, layout.halo_rows},
      pixel_tiles(problem, layout), blocks_of(problem, layout, device) * layout.channel_tiles,
      {layout.threads(), layout.shared_memory});
  for (LaunchSpec::Map& map : out.first().launch.maps) map.spec.swizzled = true;
  return out;
}

}  // namespace kiln
