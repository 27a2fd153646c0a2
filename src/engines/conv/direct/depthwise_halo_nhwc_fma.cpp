#include "engines/conv/direct/depthwise_halo_nhwc_fma.hpp"

#include <algorithm>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

constexpr DepthwiseHaloTile all_tiles[] = {
    {7, 2, 32}, {7, 2, 16},  {14, 2, 32}, {14, 2, 16}, {7, 4, 32},
    {7, 4, 16}, {14, 4, 32}, {14, 4, 16}, {7, 7, 32},  {7, 7, 16},
    {4, 4, 32}, {4, 4, 16},  {1, 8, 32},  {1, 8, 16},  {1, 4, 32},
};

// In layers of several rows, tiles of one row would read each row once for every row of the filter.
bool suits(const DepthwiseHaloTile& tile, const Gather& gather) {
  return tile.p > 1 || gather.phases.front().pixels[1] == 1;
}

constexpr std::int64_t pair = 2;  // channels of a thread
constexpr std::int64_t stages = 2;
constexpr std::int64_t block_threads = 256, most_box = 256;
constexpr std::int64_t most_registers = 255, register_unit = 8;
constexpr std::int64_t address_registers = 26;

// A tile laid on a problem.
struct Layout {
  DepthwiseHaloTile tile{};
  std::int64_t lanes = 0, columns = 0, strips = 0;  // threads of a block
  std::int64_t tiles_p = 0, tiles_q = 0;            // of an image
  std::int64_t channel_tiles = 0;
  bool weights_kept = false;  // in registers
  std::int64_t registers = 0, shared_memory = 0, resident = 0;

  std::int64_t threads() const { return lanes * columns * strips; }
};

std::int64_t registers_of(const Gather& gather, const DepthwiseHaloTile& tile, bool kept) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t rows = std::min(tile.p, ceil_div(places_met(gather, 1, 1), gather.stride[1]));
  return pair * (rows * tile.q + places_met(gather, 2, tile.q) +
                 (kept ? taps[1] * taps[2] : taps[2])) +
         address_registers;
}

// Bytes that memory and L2 move for each byte of a line of `line_bytes`; fitted to an H200's times.
double moved_share(std::int64_t line_bytes) {
  constexpr double whole = 1, sectors = 1.05, parts = 1.8;
  return line_bytes % 64 == 0 ? whole : line_bytes % 32 == 0 ? sectors : parts;
}

// How many 16-byte vectors of channels a block takes: whole memory sectors where possible, with few
// idle vectors in the last block.
std::int64_t vectors_of(std::int64_t all, std::int64_t most) {
  // What a tile costs besides its vectors, relative to one of them; chosen, not measured.
  constexpr double tile_cost = 0.5;
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t vectors = 1; vectors <= std::min(all, most); ++vectors) {
    const double cost = static_cast<double>(round_up(all, vectors)) *
                        moved_share(vectors * channel_vector_bytes) *
                        (1 + tile_cost / static_cast<double>(vectors));
    if (least == 0 || cost <= least) best = vectors, least = cost;
  }
  return best;
}

std::optional<Layout> lay(const DepthwiseHaloTile& tile, const ConvolutionProblem& problem,
                          const Gather& gather, const DeviceDescription& device) {
  const Spatial& pixels = gather.phases.front().pixels;
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  Layout out;
  out.tile = tile;
  // A line of a halo is a multiple of 16 bytes.
  const std::int64_t vector = channel_vector(problem.type());
  out.lanes = vectors_of(problem.groups / vector, tile.lanes * pair / vector) * vector / pair;
  out.channel_tiles = ceil_div(problem.groups, out.lanes * pair);
  const std::int64_t all_columns = ceil_div(pixels[2], tile.q),
                     all_strips = ceil_div(pixels[1], tile.p);
  out.tiles_q = ceil_div(all_columns * out.lanes, block_threads);
  out.columns = ceil_div(all_columns, out.tiles_q);
  const std::int64_t most_strips =
      std::clamp<std::int64_t>(block_threads / (out.lanes * out.columns), 1, all_strips);
  out.tiles_p = ceil_div(all_strips, most_strips);
  out.strips = ceil_div(all_strips, out.tiles_p);

  out.weights_kept = registers_of(gather, tile, true) <= most_registers;
  out.registers = registers_of(gather, tile, out.weights_kept);
  if (out.registers > most_registers) return std::nullopt;
  const std::int64_t rows = places_met(gather, 1, out.strips * tile.p),
                     columns = places_met(gather, 2, out.columns * tile.q);
  if (rows > most_box || columns > most_box) return std::nullopt;
  const std::int64_t channels = out.lanes * pair;
  out.shared_memory = stages * round_up(rows * columns * channels * element, 128) +
                      round_up(gather.most_taps() * channels * 4, 16) + stages * 8;
  if (out.shared_memory > device.shared_memory_per_block) return std::nullopt;
  const std::int64_t warps = ceil_div(out.threads(), 32);
  out.resident = std::min(
      device.registers_per_multiprocessor / (warps * 32 * round_up(out.registers, register_unit)),
      device.shared_memory_per_multiprocessor / (out.shared_memory + 1024));
  if (out.resident < 1) return std::nullopt;
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
  if (gather.channels != 1 || gather.rows != 1)
    return cat(gather.channels, " input and ", gather.rows,
               " output channels a group; this engine takes one of each");
  if (size_of(problem.type()) > 4)
    return "the data type is f64; this engine takes f32, f16 and bf16";
  if (auto refused = plane_refusal(gather)) return refused;
  if (auto refused = channel_vectors_refusal(problem, gather)) return refused;
  return boxes_refusal(device);
}

double seconds(const ConvolutionProblem& problem, const Gather& gather, const Layout& layout,
               const DeviceDescription& device) {
  const std::int64_t tiles = pixel_tiles(problem, layout);
  DepthwiseHaloWork work;
  const DepthwiseHaloTile& tile = layout.tile;
  work.products = static_cast<double>(pair * tile.p * tile.q * gather.most_taps());
  work.places = static_cast<double>(places_met(gather, 1, tile.p) * places_met(gather, 2, tile.q));
  work.weights = layout.weights_kept ? 0 : static_cast<double>(tile.p * gather.most_taps());
  work.results = static_cast<double>(tile.p * tile.q);
  work.warps = static_cast<double>(ceil_div(layout.threads(), 32));
  work.resident = static_cast<double>(layout.resident);
  const std::int64_t blocks = blocks_of(problem, layout, device);
  work.tiles = static_cast<double>(ceil_div(std::max<std::int64_t>(tiles, 1), blocks));
  work.blocks = static_cast<double>(blocks * layout.channel_tiles);
  work.lines_share =
      moved_share(layout.lanes * pair * static_cast<std::int64_t>(size_of(problem.type()))) *
      static_cast<double>(layout.channel_tiles * layout.lanes * pair) /
      static_cast<double>(problem.groups);
  work.bytes = work_of(problem, false).bytes;
  return depthwise_halo_seconds(work, device);
}

}  // namespace

std::span<const DepthwiseHaloTile> DepthwiseHaloNhwcFmaEngine::tiles() { return all_tiles; }

bool DepthwiseHaloNhwcFmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::variant<std::vector<Candidate>, Refusal> DepthwiseHaloNhwcFmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather, device)) return refused;
  std::vector<Candidate> out;
  for (std::size_t i = 0; i < std::size(all_tiles); ++i) {
    if (!suits(all_tiles[i], gather)) continue;
    const std::optional<Layout> layout = lay(all_tiles[i], problem, gather, device);
    if (layout && pixel_tiles(problem, *layout) <= limit32 / 2)
      out.push_back({static_cast<int>(i), 1, seconds(problem, gather, *layout, device)});
  }
  if (out.empty()) return Refusal{"the halo or the sums of no tile fit into a multiprocessor"};
  return out;
}

Proposal DepthwiseHaloNhwcFmaEngine::make(const Problem& any, const DeviceDescription& device,
                                          Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(all_tiles[candidate.kernel], problem, gather, device).value();
  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/direct/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(layout.tile.p, "x", layout.tile.q, " pixels a thread, ",
                  layout.strips * layout.tile.p, "x", layout.columns * layout.tile.q, " pixels x ",
                  layout.lanes * pair, " channels a block, ", layout.threads(), " threads");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(layout.shared_memory);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("GROUPS", problem.groups);
  add("TILE_P", layout.tile.p, "rows of pixels of a thread");
  add("TILE_Q", layout.tile.q);
  add("LANES_C", layout.lanes, "pairs of channels of a block");
  add("COLUMNS", layout.columns, "threads of a block along a row of pixels");
  add("STRIPS", layout.strips, "threads of a block down a column of pixels");
  add("STAGES", stages, "halos in shared memory");
  add("TILES_P", layout.tiles_p, "tiles down an image");
  add("TILES_Q", layout.tiles_q);
  add("CHANNEL_TILES", layout.channel_tiles);
  add("WEIGHTS_KEPT", layout.weights_kept, "the filter's weights stay in registers");
  add("MIN_BLOCKS", layout.resident);
  add("SHARED_BYTES", layout.shared_memory);

  Proposal out{{std::move(spec), {}}};
  out.first().launch = boxed_gather_launch(
      problem, gather,
      {layout.lanes * pair, places_met(gather, 2, layout.columns * layout.tile.q),
       places_met(gather, 1, layout.strips * layout.tile.p)},
      pixel_tiles(problem, layout), blocks_of(problem, layout, device) * layout.channel_tiles,
      {layout.threads(), layout.shared_memory});
  return out;
}

}  // namespace kiln
