#include "engines/local/local_dgrad_fma.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/block_layout.hpp"
#include "engines/local/filter_order.hpp"
#include "engines/local/kernel.hpp"

namespace kiln {
namespace {

// Warps with which a multiprocessor reaches its rates, and the share that it reaches at least.
constexpr double enough_warps = 14, least_share = 0.05;

constexpr std::int64_t most_shared = 72
                                     << 10;  // bytes, so that three blocks share a multiprocessor

struct Tile {
  std::int64_t rows = 0, channels = 0;  // of dx
  std::int64_t taps = 0;                // rows of the filter that an output row has in the tile
  std::int64_t slots = 0, images = 1, warps = 8, row_chunk = 1;
  std::int64_t shared = 0;
  double waste = 1;  // bytes fetched for each that is used
};

// Bytes of the warps' tiles, rounded up so that the factors behind them are aligned to vectors.
std::int64_t tile_bytes(const ConvolutionProblem& conv, const Tile& tile) {
  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(conv.type())));
  return round_up(tile.warps * tile.images * tile.channels * tile.rows * conv.in[2] * bytes, 16);
}
std::int64_t shared_bytes(const ConvolutionProblem& conv, const Tile& tile) {
  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(conv.type())));
  return tile_bytes(conv, tile) + tile.warps * tile.row_chunk * tile.images * bytes;
}

// The tile that reads whole sectors of weights and keeps most lanes busy, and of which there are
// enough for the device.
Tile choose_tile(const LocalProblem& problem, const FilterOrder& order,
                 const DeviceDescription& device) {
  const ConvolutionProblem& conv = problem.conv;
  const auto bytes = static_cast<double>(size_of(conv.type()));
  const std::int64_t most_shared_here =
      std::min<std::int64_t>(most_shared, device.shared_memory_per_block);
  const std::int64_t most_sums = conv.type() == KILN_DATA_DOUBLE ? 8 : 32;
  Tile best;
  double most = 0;
  for (std::int64_t images = images_at_once(problem, 8); images >= 1 && best.rows == 0; images /= 2)
    for (std::int64_t rows = 1; rows <= std::min<std::int64_t>(8, conv.in[1]); ++rows)
      for (std::int64_t channels = 1; channels < 2 * conv.group_in(); channels *= 2) {
        Tile tile;
        tile.images = images;
        tile.rows = rows;
        tile.channels = std::min(channels, conv.group_in());
        tile.taps = std::min(conv.filter[1], ceil_div(rows, conv.dilation[1]));
        tile.warps = std::min<std::int64_t>(8, power_at_least(conv.out[2]));
        tile.row_chunk = std::min<std::int64_t>(32, power_at_least(conv.group_out()));
        const std::int64_t columns = tile.channels * tile.taps * conv.filter[2];
        tile.slots = ceil_div(columns, 32);
        tile.shared = shared_bytes(conv, tile);
        if (tile.slots * images > most_sums || tile.slots > 4 || tile.shared > most_shared_here)
          continue;
        // Contiguous elements among those that a lane or a warp reads.
        std::int64_t run = order.rows_inner                   ? conv.group_out()
                           : order.taps_inner                 ? tile.taps * conv.filter[2]
                           : tile.channels == conv.group_in() ? columns
                                                              : tile.channels;
        if (order.taps_inner && !order.rows_inner && tile.taps == conv.filter[1])
          run *= tile.channels;
        constexpr double sector = 32;
        const double length = static_cast<double>(run) * bytes;
        tile.waste = (length + sector / 2) / length;
        const auto blocks = static_cast<double>(
            ceil_div(conv.in[1], rows) * conv.groups * ceil_div(conv.group_in(), tile.channels) *
            ceil_div(std::max<std::int64_t>(conv.batch, 1), images));
        const double lanes = static_cast<double>(columns) / static_cast<double>(tile.slots * 32);
        const double busy = std::min(1.0, blocks * static_cast<double>(tile.warps) /
                                              (enough_warps * device.multiprocessors));
        // A tile without any lane at work would still do half of what one with all of them does.
        constexpr double idle_lanes_share = 0.5;
        const double worth =
            busy * (idle_lanes_share + (1 - idle_lanes_share) * lanes) / tile.waste;
        if (worth <= most) continue;
        most = worth;
        best = tile;
      }
  return best;
}

std::int64_t blocks_of(const ConvolutionProblem& conv, const Tile& tile) {
  return ceil_div(conv.in[1], tile.rows) * ceil_div(conv.group_in(), tile.channels) * conv.groups *
         ceil_div(conv.batch, tile.images);
}

}  // namespace

bool LocalDgradFmaEngine::is_for(const Problem& problem) const {
  const auto* local = std::get_if<LocalProblem>(&problem);
  return local != nullptr && local->conv.pass == ConvolutionPass::dgrad;
}

std::variant<Proposal, Refusal> LocalDgradFmaEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  if (conv.in[0] != 1 || conv.out[0] != 1 || conv.filter[0] != 1 || conv.pad[0] != 0)
    return Refusal{"three dimensions of space; this engine takes one and two"};
  const auto order = filter_order(problem);
  if (!order) return no_filter_order();
  const Tile tile = choose_tile(problem, *order, device);
  if (tile.rows == 0)
    return Refusal{"no rows of dx and part of a filter fit into shared memory and registers"};
  const std::int64_t blocks = blocks_of(conv, tile);
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};

  const std::int64_t vector = order->rows_inner ? order->vector : 1;
  KernelSpec spec = local_kernel(name(), problem);
  add_filter_order(spec, *order, problem);
  spec.alignment = static_cast<std::size_t>(vector) * size_of(conv.type());
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared);
  spec.tile = cat(tile.rows, tile.rows > 1 ? " rows x " : " row x ", tile.channels,
                  tile.channels > 1 ? " channels, " : " channel, ", tile.images,
                  tile.images > 1 ? " images, " : " image, ", tile.warps * 32, " threads");
  const auto add = [&](const char* name, std::int64_t value) {
    spec.constants.push_back({name, value, ""});
  };
  add("WARPS", tile.warps);
  add("TILE_H", tile.rows);
  add("TILE_CHANNELS", tile.channels);
  add("TAPS_H", tile.taps);
  add("SLOTS", tile.slots);
  add("IMAGES", tile.images);
  add("ROW_TILES", ceil_div(conv.in[1], tile.rows));
  add("CHANNEL_TILES", ceil_div(conv.group_in(), tile.channels));
  add("ROW_CHUNK", std::max(tile.row_chunk, vector));
  add("ROW_VECTOR", vector);
  add("FACTORS_OFFSET", tile_bytes(conv, tile));
  // Keeps sixteen loads of weights in flight.
  add("UNROLLED", std::max<std::int64_t>(1, 16 / (tile.slots * vector)));
  add("MIN_BLOCKS", tile.slots * tile.images > 16 ? 2 : 3);
  return Proposal{{std::move(spec), local_launch(problem, blocks, tile.warps * 32,
                                                 static_cast<std::uint32_t>(tile.shared))}};
}

double LocalDgradFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  const auto order = filter_order(problem);
  if (!order) return 0;
  const Tile tile = choose_tile(problem, *order, device);
  if (tile.rows == 0) return 0;
  const double products = conv.flops() / 2;
  const auto images = static_cast<double>(tile.images), slots = static_cast<double>(tile.slots);
  // Instructions, counted: a lane's products for existing columns, a load of a weight, a load of a
  // factor.
  const double lanes = slots * 32 / static_cast<double>(tile.channels * tile.taps * conv.filter[2]);
  const double instructions = products * lanes * (1 + 2 / images + 1 / slots);
  const double busy = static_cast<double>(blocks_of(conv, tile) * tile.warps) /
                      (enough_warps * device.multiprocessors);
  return local_seconds(any, instructions, tile.waste / std::clamp(busy, least_share, 1.0), device);
}

}  // namespace kiln
