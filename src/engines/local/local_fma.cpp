#include "engines/local/local_fma.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/block_layout.hpp"
#include "engines/local/filter_order.hpp"
#include "engines/local/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t warps = 4;
constexpr std::int64_t most_window = 32 << 10;  // bytes of shared memory

struct Tile {
  std::int64_t thread_rows = 1, thread_columns = 1;
  std::int64_t row_lanes = 1;  // of a warp
  std::int64_t row_warps = 1, column_warps = 1;
  std::int64_t images = 1, chunk = 0;

  std::int64_t rows() const { return row_warps * row_lanes * thread_rows; }
  std::int64_t step() const { return column_warps * (32 / row_lanes) * thread_columns; }
  std::int64_t threads() const { return row_warps * column_warps * 32; }
  std::int64_t sums() const { return thread_rows * images; }
};

Tile choose_tile(const LocalProblem& problem, const FilterOrder& order) {
  const ConvolutionProblem& conv = problem.conv;
  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(conv.type())));
  const std::int64_t quad = 16 / bytes, rows = conv.group_out();
  Tile tile;
  if (order.rows_inner) {
    tile.thread_rows = order.vector;
    tile.thread_columns = quad;
    tile.row_lanes = std::min<std::int64_t>(32, power_at_least(ceil_div(rows, order.vector)));
  } else {
    tile.thread_rows = std::min<std::int64_t>(4, power_at_least(rows));
    tile.thread_columns = order.vector;
    tile.row_warps =
        std::min<std::int64_t>(warps, power_at_least(ceil_div(rows, tile.thread_rows)));
  }
  tile.column_warps = warps / tile.row_warps;
  const std::int64_t most_sums = conv.type() == KILN_DATA_DOUBLE ? 16 : 64;
  tile.images = images_at_once(problem, std::min<std::int64_t>(16, most_sums / tile.thread_rows));
  const std::int64_t columns = conv.group_in() * conv.taps();
  // At most as many threads along the columns as there are columns, and as the window has room for.
  while (tile.column_warps > 1 &&
         (tile.step() / 2 >= columns || tile.step() * tile.images * bytes > most_window))
    tile.column_warps /= 2;
  const std::int64_t most_chunk =
      std::max(most_window / (tile.images * bytes) / tile.step(), std::int64_t{1}) * tile.step();
  const std::int64_t chunks = ceil_div(columns, most_chunk);
  tile.chunk = round_up(ceil_div(columns, chunks), tile.step());
  return tile;
}

}  // namespace

bool LocalFmaEngine::is_for(const Problem& problem) const {
  const auto* local = std::get_if<LocalProblem>(&problem);
  return local != nullptr && local->conv.pass == ConvolutionPass::fprop;
}

std::variant<Proposal, Refusal> LocalFmaEngine::propose(const Problem& any,
                                                        const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  const auto order = filter_order(problem);
  if (!order) return no_filter_order();
  const Tile tile = choose_tile(problem, *order);
  const std::int64_t row_blocks = ceil_div(conv.group_out(), tile.rows());
  const std::int64_t blocks =
      ceil_div(conv.batch, tile.images) * row_blocks * conv.groups * conv.out_pixels();
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  if (conv.group_in() * conv.taps() > limit32 / 2)
    return Refusal{"more than 2^30 weights of one filter"};

  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(conv.type())));
  const std::int64_t window = round_up(tile.images * tile.chunk * bytes, 16);
  const std::int64_t sums =
      tile.column_warps > 1 ? tile.column_warps * tile.rows() * tile.images * bytes : 0;
  if (window + sums > device.shared_memory_per_block)
    return Refusal{cat("it needs ", window + sums, " bytes of shared memory; a block has ",
                       device.shared_memory_per_block)};
  KernelSpec spec = local_kernel(name(), problem);
  add_filter_order(spec, *order, problem);
  spec.shared_memory = static_cast<std::uint32_t>(window + sums);
  spec.tile = cat(tile.rows(), " filters x ", tile.step(), " columns, ", tile.images,
                  tile.images > 1 ? " images, " : " image, ", tile.threads(), " threads");
  const auto add = [&](const char* name, std::int64_t value) {
    spec.constants.push_back({name, value, ""});
  };
  add("THREAD_ROWS", tile.thread_rows);
  add("THREAD_COLUMNS", tile.thread_columns);
  add("ROW_LANES", tile.row_lanes);
  add("ROW_WARPS", tile.row_warps);
  add("COLUMN_WARPS", tile.column_warps);
  add("ROW_BLOCKS", row_blocks);
  add("IMAGES", tile.images);
  add("CHUNK", tile.chunk);
  add("SUMS_OFFSET", window);
  // Keeps eight vectors of weights in flight where registers allow.
  const std::int64_t words = tile.sums() * bytes / 4;
  add("UNROLLED", words <= 32 ? 2 : 1);
  // A vector of 16-bit weights becomes eight words, for which four blocks leave too few registers
  // (168 bytes of spills on sm_120).
  const bool halves = size_of(conv.type()) == 2;
  add("MIN_BLOCKS", words <= 16 ? 6 : words <= 32 && !halves ? 4 : 3);
  return Proposal{{std::move(spec), local_launch(problem, blocks, tile.threads(),
                                                 static_cast<std::uint32_t>(window + sums))}};
}

double LocalFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  const auto order = filter_order(problem);
  if (!order) return 0;
  const Tile tile = choose_tile(problem, *order);
  // Instructions, counted: a product, its share of loading a vector of weights and one of the
  // window, and copying windows.
  const double products = conv.flops() / 2;
  const double windows = products / static_cast<double>(std::min(tile.rows(), conv.group_out()));
  constexpr double copy_instructions = 8, vector_instructions = 6;
  const double instructions =
      products * (1 + vector_instructions / static_cast<double>(tile.images * order->vector)) +
      windows * copy_instructions;
  return local_seconds(any, instructions, whole_lines_waste, device);
}

}  // namespace kiln
