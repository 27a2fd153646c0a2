#include "engines/conv/maps/tensor_maps.hpp"

#include <algorithm>
#include <utility>

#include "core/integer.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_line_bytes = 128, least_line_bytes = 32;  // of TMA's swizzle modes

std::int64_t element_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }
// Element i (0: W, 1: H, 2: D) of values that are stored outermost first.
std::int64_t across(const Spatial& values, std::size_t i) { return values[2 - i]; }

std::int64_t reach(const Gather& gather, const Gather::Phase& phase, std::size_t i) {
  return (across(phase.taps, i) - 1) * across(gather.step, i);
}

TensorMapSpec tiled(const ConvolutionProblem& problem, int rank) {
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = rank;
  return map;
}

// Sets the stride of dimension i. A dimension of size 1 gets the stride of a dense tensor, because
// maps must not have a stride of 0.
void set_stride(TensorMapSpec& map, std::size_t i, std::int64_t elements) {
  const std::int64_t element = element_of(map.type);
  const std::int64_t dense =
      i == 1 ? round_up(map.sizes[0] * element, 16) : map.strides[i - 2] * map.sizes[i - 1];
  map.strides[i - 1] = map.sizes[i] == 1 ? dense : elements * element;
}

// Sets the strides of space and images. The map's sizes have to be set before.
void set_strides(TensorMapSpec& map, const Dims& strides) {
  for (int i = 0; i < map.space(); ++i) set_stride(map, 1 + i, strides[4 - i]);
  set_stride(map, map.rank - 1, strides[0]);
}

// Sets the sizes {channels, W, H (, D), N}.
void set_sizes(TensorMapSpec& map, std::int64_t channels, const Spatial& places,
               std::int64_t batch) {
  map.sizes[0] = channels;
  for (int i = 0; i < map.space(); ++i) map.sizes[1 + i] = across(places, i);
  map.sizes[map.rank - 1] = batch;
}

}  // namespace

TensorMapSpec dense_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const DenseLines& lines,
                               std::int64_t rows) {
  const bool by_channels = filter_by_channels(gather);
  TensorMapSpec map = tiled(problem, 2 + dense_space(gather));
  const int last = map.rank - 1;
  // The groups follow each other along the rows of w in the forward pass, else along its channels.
  const bool in_rows = problem.pass == ConvolutionPass::fprop;
  const std::int64_t groups = problem.group_strides ? 1 : gather.groups;
  set_sizes(map, gather.channels * (in_rows ? 1 : groups), phase.taps,
            gather.rows * (in_rows ? groups : 1));
  if (by_channels) std::swap(map.sizes[0], map.sizes[last]);
  if (problem.group_strides && gather.w_group != 0) map.sizes[1] = gather.groups;
  for (int i = 0; i < map.space(); ++i)
    set_stride(map, 1 + i,
               problem.group_strides && i == 0 ? gather.w_group : across(gather.w_tap, i));
  set_stride(map, last, by_channels ? gather.w_channel : gather.w_row);
  map.box = {by_channels ? lines.rows : lines.channels, 1, 1, 1, 1};
  map.box[last] = by_channels ? lines.channels : rows;
  return map;
}

std::int64_t dense_vector(DataType type) { return 16 / element_of(type); }

int dense_space(const Gather& gather) {
  return gather.source[0] != 1 || gather.largest_pixels()[0] != 1 || gather.largest_taps()[0] > 1
             ? 3
             : 2;
}

DenseLines dense_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows) {
  const std::int64_t most = most_line_bytes / element_of(problem.type()),
                     least = least_line_bytes / element_of(problem.type());
  DenseLines lines{most, rows > 0 ? std::min(rows, most) : most};
  // Few channels waste most of a 128-byte line. In two dimensions the whole line stays, because the
  // kernels were measured with it.
  const auto too_wide = [&] {
    return gather.groups > 1 && !problem.group_strides
               ? gather.channels % lines.channels != 0
               : dense_space(gather) == 3 && gather.channels <= lines.channels / 2;
  };
  while (lines.channels > least && too_wide()) lines.channels /= 2;
  return lines;
}

DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase) {
  DensePhase out;
  for (std::size_t i = 0; i < 3; ++i) {
    out.lower[i] = across(phase.origin, i) + std::min<std::int64_t>(reach(gather, phase, i), 0);
    out.upper[i] = out.lower[i] + (across(phase.pixels, i) - 1) * across(gather.stride, i) -
                   (across(gather.source, i) - 1);
  }
  return out;
}

TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const PixelBox& box) {
  const DensePhase places = dense_phase(gather, phase);
  TensorMapSpec map = tiled(problem, 2 + dense_space(gather));
  map.mode = TensorMapSpec::Mode::im2col;
  set_sizes(map, gather.channels * gather.groups, gather.source, problem.batch);
  set_strides(map, gather.source_strides);
  map.box = {box.channels, box.pixels};
  for (int i = 0; i < map.space(); ++i) {
    map.lower[i] = places.lower[i];
    map.upper[i] = places.upper[i];
    map.steps[i] = across(gather.stride, i);
  }
  return map;
}

TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              const PixelBox& box) {
  TensorMapSpec map = tiled(problem, line ? 2 : 2 + dense_space(gather));
  map.box = {box.channels, box.pixels};
  if (line) {
    map.sizes = {gather.rows * gather.groups, problem.batch * phase.out_pixels()};
    const std::int64_t stride = phase.pixels[2] > 1   ? strides[4]
                                : phase.pixels[1] > 1 ? strides[3]
                                : phase.pixels[0] > 1 ? strides[2]
                                                      : strides[0];
    set_stride(map, 1, stride);
    return map;
  }
  map.mode = TensorMapSpec::Mode::im2col;
  set_sizes(map, gather.rows * gather.groups, phase.pixels, problem.batch);
  set_strides(map, strides);
  return map;
}

TensorMapSpec dense_matrix_map(const ConvolutionProblem& problem, std::int64_t matrices,
                               std::int64_t channels, std::int64_t pixel, std::int64_t matrix,
                               const PixelBox& box) {
  TensorMapSpec map = tiled(problem, 4);
  set_sizes(map, channels, {1, 1, matrix != 0 ? matrices : 1}, problem.batch);
  set_strides(map, {pixel, 1, 0, 0, matrix});
  map.box = {box.channels, 1, 1, box.pixels};
  return map;
}

bool filter_by_channels(const Gather& gather) { return gather.w_channel != 1; }

bool in_line(const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 0;  // the stride that the next dimension must have; 0: any
  for (const auto& [size, stride] :
       {std::pair(pixels[2], strides[4]), {pixels[1], strides[3]}, {pixels[0], strides[2]}}) {
    if (size == 1) continue;
    if (next != 0 && stride != next) return false;
    next = stride * size;
  }
  return next == 0 || strides[0] == next;  // required at every batch size, 1 included
}

TensorMapSpec dense_box_map(const ConvolutionProblem& problem, int space, std::int64_t channels,
                            const Spatial& pixels, const Dims& strides,
                            const std::array<std::int64_t, 3>& box) {
  TensorMapSpec map = tiled(problem, 2 + space);
  set_sizes(map, channels, pixels, problem.batch);
  set_strides(map, strides);
  map.box = {box[0], box[1], box[2], 1, 1};
  return map;
}

}  // namespace kiln
