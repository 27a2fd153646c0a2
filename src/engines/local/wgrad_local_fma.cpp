#include "engines/local/wgrad_local_fma.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/block_layout.hpp"
#include "engines/local/filter_order.hpp"
#include "engines/local/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t threads = 128;

struct Tile {
  std::int64_t thread_rows = 1, thread_columns = 1;
  std::int64_t row_threads = 1, column_threads = threads;
  std::int64_t images = 1;

  std::int64_t rows() const { return row_threads * thread_rows; }
  std::int64_t columns() const { return column_threads * thread_columns; }
};

Tile choose_tile(const LocalProblem& problem, const FilterOrder& order) {
  const ConvolutionProblem& conv = problem.conv;
  const std::int64_t rows = conv.group_out();
  Tile tile;
  if (order.rows_inner) {
    tile.thread_rows = order.vector;
    tile.thread_columns = 4;
    tile.row_threads = std::min<std::int64_t>(32, power_at_least(ceil_div(rows, tile.thread_rows)));
  } else {
    tile.thread_rows = std::min<std::int64_t>(4, power_at_least(rows));
    tile.thread_columns = order.vector;
    tile.row_threads = std::min<std::int64_t>(8, power_at_least(ceil_div(rows, tile.thread_rows)));
  }
  tile.column_threads = threads / tile.row_threads;
  tile.images = images_at_once(problem, 16);
  return tile;
}

}  // namespace

bool WgradLocalFmaEngine::is_for(const Problem& problem) const {
  const auto* local = std::get_if<LocalProblem>(&problem);
  return local != nullptr && local->conv.pass == ConvolutionPass::wgrad;
}

std::variant<Proposal, Refusal> WgradLocalFmaEngine::propose(const Problem& any,
                                                             const DeviceDescription&) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  const auto order = filter_order(problem);
  if (!order) return no_filter_order();
  const Tile tile = choose_tile(problem, *order);
  const std::int64_t columns = conv.group_in() * conv.taps();
  if (columns > limit32 / 2) return Refusal{"more than 2^30 weights of one filter"};
  const std::int64_t row_blocks = ceil_div(conv.group_out(), tile.rows());
  const std::int64_t column_blocks = ceil_div(columns, tile.columns());
  const std::int64_t blocks = (problem.per_image() ? conv.batch : 1) * row_blocks * column_blocks *
                              conv.groups * conv.out_pixels();
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};

  const auto bytes = static_cast<std::int64_t>(size_of(compute_type(conv.type())));
  const std::int64_t window = round_up(tile.images * tile.columns() * bytes, 16);
  const std::int64_t shared = window + tile.images * tile.rows() * bytes;
  KernelSpec spec = local_kernel(name(), problem);
  add_filter_order(spec, *order, problem);
  spec.shared_memory = static_cast<std::uint32_t>(shared);
  spec.tile = cat(tile.rows(), " filters x ", tile.columns(), " columns, ", tile.images,
                  tile.images > 1 ? " images at a time" : " image at a time");
  const auto add = [&](const char* name, std::int64_t value) {
    spec.constants.push_back({name, value, ""});
  };
  add("THREAD_ROWS", tile.thread_rows);
  add("THREAD_COLUMNS", tile.thread_columns);
  add("ROW_THREADS", tile.row_threads);
  add("COLUMN_THREADS", tile.column_threads);
  add("ROW_BLOCKS", row_blocks);
  add("COLUMN_BLOCKS", column_blocks);
  add("PIXELS", conv.out_pixels());
  add("IMAGES", tile.images);
  add("GRADIENT_OFFSET", window);
  add("MIN_BLOCKS", conv.type() == KILN_DATA_DOUBLE ? 4 : 6);
  return Proposal{{std::move(spec),
                   local_launch(problem, blocks, threads, static_cast<std::uint32_t>(shared))}};
}

double WgradLocalFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const ConvolutionProblem& conv = problem.conv;
  const auto order = filter_order(problem);
  if (!order) return 0;
  const Tile tile = choose_tile(problem, *order);
  const double products = conv.flops() / 2;
  const double windows = products / static_cast<double>(std::min(tile.rows(), conv.group_out()));
  // Counted: of a product with its share of loading its operands, and of copying a window's
  // element.
  constexpr double product_instructions = 1.5, copy_instructions = 8;
  return local_seconds(any, products * product_instructions + windows * copy_instructions,
                       whole_lines_waste, device);
}

}  // namespace kiln
