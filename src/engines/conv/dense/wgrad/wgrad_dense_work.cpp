#include "engines/conv/dense/wgrad/wgrad_dense_work.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "engines/conv/filter_gradient/layout.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/chips.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr int finish_loads = 8;  // in flight, of a thread of the second step

// Bytes of operands and result, once each, but those of x alone that some tap reads.
double bytes_of(const ConvolutionProblem& problem) {
  double share = 1;
  for (std::size_t i = 0; i < 3; ++i)
    share *= std::min(
        static_cast<double>(problem.out[i] * std::min(problem.filter[i], problem.stride[i])) /
            static_cast<double>(problem.in[i]),
        1.0);
  const auto elements =
      static_cast<double>(problem.batch * problem.in_channels * problem.in_pixels());
  return work_of(problem, false).bytes -
         elements * (1 - share) * static_cast<double>(size_of(problem.type()));
}

}  // namespace

std::int64_t packed_groups(const ConvolutionProblem& problem) {
  std::int64_t packed = 1;
  while (problem.groups % (2 * packed) == 0 &&
         2 * packed * std::max(problem.group_in(), problem.group_out()) <= 64)
    packed *= 2;
  return packed;
}
std::int64_t rows_of(const ConvolutionProblem& problem) {
  return packed_groups(problem) * problem.group_out();
}
std::int64_t channels_of(const ConvolutionProblem& problem) {
  return packed_groups(problem) * problem.group_in();
}

std::int64_t column_blocks(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  return ceil_div(channels_of(problem), tile.line_channels()) * problem.taps();
}
std::int64_t tile_count(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  return problem.groups / packed_groups(problem) * ceil_div(rows_of(problem), tile.filters()) *
         ceil_div(column_blocks(tile, problem), tile.right / tile.line_channels());
}
std::int64_t pixels_of(const ConvolutionProblem& problem) {
  return problem.batch * problem.out_pixels();
}
bool dy_planar(const ConvolutionProblem& problem) {
  return problem.out_channels > 1 && problem.y_strides[1] != 1;
}

std::int64_t step_count(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  // With channels first, a step's pixels belong to one plane.
  if (tile.planar || dy_planar(problem))
    return problem.batch * ceil_div(problem.out_pixels(), tile.step_pixels);
  return ceil_div(pixels_of(problem), tile.step_pixels);
}

DenseWgradFinishParams finish_shape(int groups) {
  constexpr int least_warps = 4;
  DenseWgradFinishParams shape{};
  const int parts = std::min(static_cast<int>(ceil_div(groups, finish_loads)), most_finish_warps);
  shape.parts = static_cast<unsigned>(parts == 3 ? least_warps : parts);
  shape.slices = std::max(least_warps / shape.parts, 1u);
  return shape;
}

DenseWgradWork whole_work(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  DenseWgradWork work;
  work.filters = tile.filters();
  work.columns = tile.right;
  work.step_pixels = tile.step_pixels;
  work.stages = tile.stages();
  work.element = tile.element;
  work.turned = tile.turns();
  work.split = tile.split;
  const std::int64_t blocks = column_blocks(tile, problem),
                     of_tile = tile.right / tile.line_channels();
  work.column_tiles = static_cast<double>(ceil_div(blocks, of_tile));
  work.row_tiles = static_cast<double>(ceil_div(rows_of(problem), tile.filters()));
  if (of_tile <= blocks / problem.taps())  // a tile is of one tap, others of the rest of its row
    work.tap_tiles = static_cast<double>(problem.filter[ConvolutionProblem::width]);
  const auto odd = [&](std::int64_t channels) {
    return !tile.planar && channels % tile.line_channels() != 0;
  };
  work.odd_dy = odd(problem.out_channels);
  work.odd_x = odd(problem.in_channels);
  work.persistent = tile.persistent();
  work.bytes = bytes_of(problem);
  if (taps_side_by_side(make_gather(problem)))
    work.singles = static_cast<double>(problem.out_channels * problem.group_in() * problem.taps());
  return work;
}

DenseWgradWork divided(DenseWgradWork work, const WgradDenseTile& tile,
                       const ConvolutionProblem& problem, const Sharing& sharing) {
  work.blocks = static_cast<double>(tile_count(tile, problem) * sharing.parts * sharing.groups);
  work.steps = static_cast<double>(
      ceil_div(step_count(tile, problem), std::int64_t{sharing.parts} * sharing.groups));
  work.cluster = sharing.parts;
  work.groups = sharing.groups;
  work.rounds_of_loads = static_cast<int>(
      ceil_div(sharing.groups, std::int64_t{finish_loads} * finish_shape(sharing.groups).parts));
  return work;
}

int groups_of(const DenseWgradWork& whole, const WgradDenseTile& tile,
              const ConvolutionProblem& problem, int cluster, const DeviceDescription& device) {
  constexpr std::int64_t least_steps = 4;  // steps of a block
  const auto places = static_cast<std::int64_t>(cluster_places(cluster, 1, device));
  const std::int64_t tiles = tile_count(tile, problem), blocks = tiles * cluster;
  // Bytes that a group leaves in the workspace.
  const std::int64_t bytes = tiles * tile.quads() * tile.consumers * 128 * quad_bytes;
  const std::int64_t most = std::min(static_cast<std::int64_t>(most_workspace) / bytes,
                                     step_count(tile, problem) / (least_steps * cluster));
  const auto groups_on = [&](std::int64_t multiprocessors) {
    return static_cast<int>(std::min(multiprocessors / blocks, most));
  };
  const auto seconds = [&](int groups) {
    return dense_wgrad_seconds(divided(whole, tile, problem, {cluster, groups}), device);
  };
  const int all = groups_on(places), half = groups_on(places / 2);
  return half > 1 && half < all && seconds(half) < seconds(all) ? half : all;
}

}  // namespace kiln
