#include "engines/conv/toeplitz/toeplitz_nhwc_mma.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

constexpr ToeplitzTile all_tiles[] = {{7, 4}, {4, 4}, {2, 4}, {4, 2}, {7, 2}, {2, 2}, {1, 12}};

constexpr std::int64_t stages = 2, box_rows = 8, most_box = 256;
constexpr std::int64_t threads = 32 * octet;

// A tile laid on a problem.
struct Layout {
  ToeplitzTile tile{};
  std::int64_t halo_columns = 0, halo_rows = 0, boxes = 0;
  std::int64_t weight_tiles = 0;  // tiles of 16 source columns that a row of the filter reads
  std::int64_t tiles_p = 0, tiles_q = 0;  // of an image
  std::int64_t shared_memory = 0;
};

std::optional<Layout> lay(const ToeplitzTile& tile, const Gather& gather,
                          const DeviceDescription& device) {
  const Gather::Phase& phase = gather.phases.front();
  Layout out;
  out.tile = tile;
  out.weight_tiles = (phase.taps[2] + 14) / 16 + 1;
  out.halo_columns = 16 * round_up(tile.columns + out.weight_tiles - 1, 2);
  out.halo_rows = 8 * tile.rows + phase.taps[1] - 1;
  if (out.halo_columns > most_box) return std::nullopt;
  out.boxes = ceil_div(out.halo_rows, box_rows);
  out.tiles_p = ceil_div(phase.pixels[1], 8 * tile.rows);
  out.tiles_q = ceil_div(phase.pixels[2], 16 * tile.columns);
  const std::int64_t planes = octet * out.halo_rows * (out.halo_columns + 8) * 2,
                     results = octet * 8 * tile.rows * (16 * tile.columns + 4) * 4,
                     weights = octet * phase.taps[1] * 2 * (16 * out.weight_tiles + 16) * 2;
  out.shared_memory = stages * box_rows * out.halo_columns * octet * 2 +
                      round_up(std::max(planes, results), 16) + round_up(weights, 16) +
                      round_up(stages * 8, 16) + 16;
  if (out.shared_memory > device.shared_memory_per_block) return std::nullopt;
  return out;
}

std::int64_t pixel_tiles(const ConvolutionProblem& problem, const Layout& layout) {
  return problem.batch * layout.tiles_p * layout.tiles_q;
}

// Blocks for one tile of channels, so that each multiprocessor runs one block at a time.
std::int64_t blocks_of(const ConvolutionProblem& problem, const Layout& layout,
                       const DeviceDescription& device) {
  const std::int64_t places =
      std::max<std::int64_t>(device.multiprocessors / (problem.groups / octet), 1);
  return std::clamp<std::int64_t>(pixel_tiles(problem, layout), 1, places);
}

double seconds(const ConvolutionProblem& problem, const Gather& gather, const Layout& layout,
               const DeviceDescription& device) {
  const std::int64_t chunks = problem.groups / octet, tiles = pixel_tiles(problem, layout);
  const std::int64_t blocks = blocks_of(problem, layout, device);
  ToeplitzWork work;
  work.products = static_cast<double>(gather.phases.front().taps[1] * layout.tile.rows *
                                      layout.tile.columns * layout.weight_tiles);
  work.halo_pixels = static_cast<double>(layout.halo_rows * layout.halo_columns);
  work.boxes = static_cast<double>(layout.boxes);
  work.results = static_cast<double>(128 * layout.tile.rows * layout.tile.columns);
  work.weights = static_cast<double>(gather.most_taps());
  work.tiles = static_cast<double>(ceil_div(std::max<std::int64_t>(tiles, 1), blocks)) *
               static_cast<double>(ceil_div(blocks * chunks, device.multiprocessors));
  work.bytes = work_of(problem, false).bytes;
  return toeplitz_seconds(work, device);
}

}  // namespace

Refusal toeplitz_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device) {
  if (gather.channels != 1 || gather.rows != 1)
    return cat(gather.channels, " input and ", gather.rows,
               " output channels a group; this engine takes one of each");
  if (auto refused = half_products_refusal(problem, device)) return refused;
  if (auto refused = boxes_refusal(device)) return refused;
  if (auto refused = plane_refusal(gather)) return refused;
  for (int i = 1; i < 3; ++i) {
    if (gather.stride[i] != 1) return cat("a stride is ", gather.stride[i], "; expected 1");
    if (std::abs(gather.step[i]) != 1 && gather.phases.front().taps[i] > 1)
      return cat("the dilation is ", std::abs(gather.step[i]), "; expected 1");
  }
  return channel_vectors_refusal(problem, gather);
}

std::span<const ToeplitzTile> ToeplitzNhwcMmaEngine::tiles() { return all_tiles; }

bool ToeplitzNhwcMmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::variant<std::vector<Candidate>, Refusal> ToeplitzNhwcMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = toeplitz_refusal(problem, gather, device)) return refused;
  std::vector<Candidate> out;
  for (std::size_t i = 0; i < std::size(all_tiles); ++i) {
    const std::optional<Layout> layout = lay(all_tiles[i], gather, device);
    if (layout && pixel_tiles(problem, *layout) <= limit32 / 64)
      out.push_back({static_cast<int>(i), 1, seconds(problem, gather, *layout, device)});
  }
  if (out.empty()) return Refusal{"the halo and the filter of no tile fit into shared memory"};
  return out;
}

Proposal ToeplitzNhwcMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                     Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(all_tiles[candidate.kernel], gather, device).value();
  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/toeplitz/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(8 * layout.tile.rows, "x", 16 * layout.tile.columns, " pixels x ", octet,
                  " channels, ", threads, " threads");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(layout.shared_memory);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("ROW_TILES", layout.tile.rows, "tiles of 8 rows of pixels");
  add("COLUMN_TILES", layout.tile.columns, "tiles of 16 columns of pixels");
  add("STAGES", stages, "boxes in shared memory");
  add("BOX_ROWS", box_rows, "source rows in a box");
  add("TILES_P", layout.tiles_p, "tiles down an image");
  add("TILES_Q", layout.tiles_q);
  add("CHANNEL_TILES", problem.groups / octet);
  add("SHARED_BYTES", layout.shared_memory);

  Proposal out{{std::move(spec), {}}};
  out.first().launch = boxed_gather_launch(
      problem, gather, {octet, layout.halo_columns, box_rows}, pixel_tiles(problem, layout),
      blocks_of(problem, layout, device) * (problem.groups / octet),
      {threads, layout.shared_memory});
  return out;
}

}  // namespace kiln
