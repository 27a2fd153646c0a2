#include "engines/conv/dense/dense_tile.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/planar.hpp"
#include "engines/conv/dense/refusal.hpp"

namespace kiln {
namespace {

constexpr int most_shared_memory = 227 * 1024, most_stages = 8, least_stages = 3;

// With pixels as operand A, many pixels share each copy of the filter. With filters as operand A,
// the tile's pixels (operand B) come in multiples of 16, so that tiles can fill the multiprocessors
// evenly.
constexpr DenseTile all_tiles[] = {
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 256},
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 128},
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 64},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 64},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 64},
    {.consumers = 2, .left = 1, .right = 192},
    {.consumers = 2, .left = 1, .right = 160},
    {.consumers = 2, .left = 1, .right = 128},
    {.consumers = 2, .left = 1, .right = 112},
    {.consumers = 2, .left = 1, .right = 96},
    {.consumers = 2, .left = 1, .right = 80},
    {.consumers = 2, .left = 1, .right = 64},
    {.consumers = 2, .left = 1, .right = 48},
    {.consumers = 2, .left = 1, .right = 32},
    {.consumers = 1, .left = 1, .right = 256},
    {.consumers = 1, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 32},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 32},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 16},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 256, .joined = true},
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 128, .joined = true},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 128, .joined = true},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 128, .joined = true},
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 64, .joined = true},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 64, .joined = true},
};

// For channels-first tensors, where a tile ends at the end of an image.
constexpr DenseTile planar_tiles[] = {
    {.consumers = 2, .left = 1, .right = 256},
    {.consumers = 2, .left = 1, .right = 224},
    {.consumers = 2, .left = 1, .right = 192},
    {.consumers = 2, .left = 1, .right = 160},
    {.consumers = 2, .left = 1, .right = 128},
    {.consumers = 2, .left = 1, .right = 64},
    {.consumers = 2, .left = 2, .right = 128},
    {.consumers = 2, .left = 2, .right = 64},
    {.consumers = 3, .left = 1, .right = 128},
    {.consumers = 1, .left = 1, .right = 256},
    {.consumers = 1, .left = 1, .right = 224},
    {.consumers = 1, .left = 1, .right = 160},
    {.consumers = 1, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 256},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 64},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 128},
    {.pixels_left = true, .consumers = 2, .left = 2, .right = 64},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 32},
};

int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
int barrier_bytes(const DenseTile& tile, int stages) { return 8 * (2 * stages + tile.consumers); }

// Rows of a line of results, which must not reach from one phase into the next; 0 if none does.
std::int64_t joined_line(const Gather& gather) {
  for (const std::int64_t bytes : {128, 64, 32})
    if (const std::int64_t line = bytes / static_cast<std::int64_t>(size_of(gather.type));
        gather.rows % line == 0)
      return line;
  return 0;
}

// Whether the rows of all phases can be rows of one product: the phases read the same pixels, and
// their filters follow each other.
bool joins_phases(const ConvolutionProblem& problem, const Gather& gather) {
  const Gather::Phase& first = gather.phases.front();
  if (!takes_phases_in_turn(gather) || first.tap_count() != 1 || gather.groups > 1 ||
      problem.epilogue.bias || joined_line(gather) == 0 || dense_store_pixels(problem, gather) > 0)
    return false;
  std::int64_t next = first.w_first;
  return std::ranges::all_of(gather.phases, [&](const Gather::Phase& phase) {
    const bool follows =
        phase.w_first == next && phase.pixels == first.pixels && phase.origin == first.origin;
    next += gather.rows * gather.w_row;
    return follows;
  });
}

// Rows of a group's product.
std::int64_t rows_of(const DenseTile& tile, const Gather& gather) {
  return gather.rows * (tile.joined ? static_cast<std::int64_t>(gather.phases.size()) : 1);
}

// Whether a line of the tile's results has 128 bytes.
bool has_whole_lines(const DenseTile& tile, const ConvolutionProblem& problem,
                     const Gather& gather) {
  const DenseLines lines = dense_lines(problem, gather, tile.pixels_left ? tile.rows() : 0);
  return lines.rows * static_cast<std::int64_t>(size_of(problem.type())) == 128;
}

// Whether the tile fits the problem's rows: with groups, no tile may reach into the next group (the
// tiles of less than 64 rows are only for them); without, less than half of the rows may be idle.
// Channels-first pixels of f32 must be operand A, which can go through registers.
bool suits(const DenseTile& tile, bool planar, const ConvolutionProblem& problem,
           const Gather& gather) {
  if (tile.joined && !joins_phases(problem, gather)) return false;
  if (leaves_parts(problem) && (tile.joined || !has_whole_lines(tile, problem, gather)))
    return false;
  if (problem.epilogue.gradient && (!tile.pixels_left || tile.left > 1)) return false;
  if (planar && size_of(gather.type) == 4 && !tile.pixels_left) return false;
  if (gather.groups > 1 && !problem.group_strides) return gather.rows % tile.rows() == 0;
  return tile.rows() >= 64 && tile.rows() < 2 * round_up(rows_of(tile, gather), 64);
}

}  // namespace

std::string describe(const DenseTile& tile) {
  return cat(
      tile.rows(), "x", tile.pixels(), tile.pixels_left ? ", pixels left, " : ", filters left, ",
      tile.joined ? "phases joined, " : "", tile.threads(), " threads, ", tile.stages, " stages");
}

std::span<const DenseTile> dense_tiles(bool planar) {
  if (planar) return planar_tiles;
  return all_tiles;
}

DenseTile lay_dense_tile(DenseTile tile, bool planar, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  tile.planar = planar;
  const int rows = tile.pixels_left ? tile.rows() : 0;
  tile.element = static_cast<int>(size_of(problem.type()));
  tile.lines =
      tile.planar ? planar_lines(problem, gather, rows) : dense_lines(problem, gather, rows);
  tile.result_line = tile.joined ? joined_line(gather) : tile.lines.rows;
  tile.store_pixels = tile.planar ? 0 : dense_store_pixels(problem, gather);
  const int line = static_cast<int>(tile.lines.channels) * tile.element;
  const int line_pixels = 128 / tile.element;
  // Channels-first images of at most 128 bytes a channel take a line of shared memory each.
  if (tile.planar && gather.phases.front().out_pixels() <= line_pixels &&
      tile.pixels() % line_pixels == 0)
    tile.images = tile.pixels() / line_pixels;
  const int lines = (tile.pixels() + line_pixels - 1) / line_pixels;
  const int pixels = tile.planar ? lines * line_pixels : tile.pixels();
  const int left = tile.pixels_left ? pixels : tile.rows(),
            right = tile.pixels_left ? tile.rows() : pixels;
  const int stage = left * line + whole_swizzles(right * line);
  const bool of_pixels = tile.planar || tile.store_pixels > 0;
  const int slab_rows = of_pixels          ? tile.planar_slab_rows()
                        : tile.pixels_left ? static_cast<int>(tile.result_line)
                                           : 64;
  const int slab_pixels = !of_pixels         ? tile.slab_pixels()
                          : tile.pixels_left ? 64
                                             : tile.line_pixels();
  const int slab = whole_swizzles(slab_pixels * slab_rows * tile.element);
  // Two large slabs would leave too little room for stages.
  constexpr int large = 25 * 1024;
  tile.slabs = slab > large && (tile.element == 4 || of_pixels) ? 1 : 2;
  const int slabs = tile.consumers * tile.slabs * slab;
  const int room = most_shared_memory - slabs - barrier_bytes(tile, most_stages);
  tile.stages = std::min(room / stage, most_stages);
  tile.shared_memory = tile.stages * stage + slabs + barrier_bytes(tile, tile.stages);
  return tile;
}

std::vector<DenseTile> lay_dense_tiles(bool planar, const Seen& seen) {
  std::vector<DenseTile> out;
  for (const DenseTile& tile : dense_tiles(planar)) {
    if (!suits(tile, planar, seen.problem, seen.gather)) continue;
    const DenseTile laid = lay_dense_tile(tile, planar, seen);
    if (laid.stages >= least_stages) out.push_back(laid);
  }
  return out;
}

bool takes_phases_in_turn(const Gather& gather) {
  const Gather::Phase& first = gather.phases.front();
  return gather.phases.size() > 1 &&
         std::ranges::all_of(gather.phases, [&](const Gather::Phase& phase) {
           return phase.out_pixels() == first.out_pixels() &&
                  phase.tap_count() == first.tap_count();
         });
}

std::span<const Gather::Phase> phases_of(const DenseTile& tile, const Gather& gather) {
  return std::span(gather.phases).first(tile.joined ? 1 : gather.phases.size());
}

std::int64_t pixel_tiles(const DenseTile& tile, std::int64_t batch, const Gather::Phase& phase) {
  if (tile.planar)
    return ceil_div(batch, tile.images) * ceil_div(phase.out_pixels(), tile.pixels() / tile.images);
  return ceil_div(batch * phase.out_pixels(), tile.pixels());
}

std::int64_t row_tiles(const DenseTile& tile, const Gather& gather) {
  return gather.groups * ceil_div(rows_of(tile, gather), tile.rows());
}

bool leaves_parts(const ConvolutionProblem& problem) {
  return problem.epilogue.moments || problem.epilogue.gradient;
}

}  // namespace kiln
