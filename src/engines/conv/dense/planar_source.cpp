#include "engines/conv/dense/planar_source.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/relayout/copies.hpp"

namespace kiln {
namespace {

bool whole(std::int64_t stride, const ConvolutionProblem& problem) {
  return stride % dense_vector(problem.type()) == 0;
}

std::uint8_t filter_operand(const ConvolutionProblem& problem) {
  return problem.pass == ConvolutionPass::dgrad ? 0 : 1;
}

// The filters as images, the taps as their pixels. The copy's channels are padded to multiples of
// 16 bytes.
RelayoutTensor filter_tensor(const ConvolutionProblem& problem) {
  RelayoutTensor tensor;
  tensor.operand = filter_operand(problem);
  tensor.type = problem.type();
  tensor.images = tensor.copied_images = problem.out_channels;
  tensor.channels = problem.group_in();
  tensor.copied_channels = round_up(tensor.channels, dense_vector(problem.type()));
  tensor.image_stride = problem.w_strides[0];
  tensor.channel_stride = problem.w_strides[1];
  tensor.plane = tensor.copied = problem.filter;
  tensor.span = (problem.out_channels - 1) * problem.w_strides[0] +
                (problem.group_in() - 1) * problem.w_strides[1] + problem.taps();
  return tensor;
}

// Whether the elements of each plane of `sizes` from dimension `first` on are contiguous.
bool is_contiguous(const Dims& strides, const Spatial& sizes, int first) {
  std::int64_t next = 1;
  for (int i = 2; i >= first; --i) {
    if (sizes[i] > 1 && strides[2 + i] != next) return false;
    next *= sizes[i];
  }
  return true;
}

std::array<RelayoutMove, 1> moves_of(const RelayoutTensor& filter) {
  return {RelayoutMove{.tensor = &filter, .in = whole_images(filter, filter.images)}};
}

// Whether only the depth has taps, and the pixels of each plane are contiguous.
bool is_deep(const ConvolutionProblem& problem) {
  for (const int i : {1, 2})
    if (problem.filter[i] != 1 || problem.stride[i] != 1 || problem.pad[i] != 0 ||
        problem.in[i] != problem.out[i])
      return false;
  return problem.filter[0] > 1 && is_contiguous(problem.x_strides, problem.in, 1) &&
         is_contiguous(problem.y_strides, problem.out, 1) &&
         (!problem.epilogue.residual || is_contiguous(problem.z_strides, problem.out, 1));
}

// Planes become rows, and the depth becomes the height.
Spatial laid_flat(const Spatial& sizes) { return {1, sizes[0], sizes[1] * sizes[2]}; }
Dims laid_flat(const Dims& strides, std::int64_t plane) {
  return {strides[0], strides[1], 0, strides[2], plane > 1 ? 1 : 0};
}

}  // namespace

bool copies_filter(const ConvolutionProblem& problem) {
  const Dims& strides = problem.w_strides;
  if (problem.group_in() > 1 && strides[1] != 1) return true;
  return !std::ranges::all_of(std::array{strides[0], strides[2], strides[3], strides[4]},
                              [&](std::int64_t stride) { return whole(stride, problem); });
}

Refusal copied_filter_refusal(const ConvolutionProblem& problem) {
  if (!copies_filter(problem)) return {};
  if (!is_contiguous(problem.w_strides, problem.filter, 0))
    return "in w neither channels are contiguous, in multiples of 16 bytes, nor the taps of a "
           "channel";
  if (const std::size_t bytes = copied_filter_bytes(problem); bytes > most_workspace)
    return cat("the copied filter has ", bytes, " bytes; expected at most the largest workspace, ",
               most_workspace);
  return {};
}

std::size_t copied_filter_bytes(const ConvolutionProblem& problem) {
  return copies_filter(problem) ? filter_tensor(problem).bytes() : 0;
}

double copied_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (!copies_filter(problem)) return 0;
  const RelayoutTensor filter = filter_tensor(problem);
  return copies_seconds(moves_of(filter), device);
}

ConvolutionProblem planar_problem(const ConvolutionProblem& problem) {
  ConvolutionProblem planar = problem;
  if (copies_filter(problem)) {
    const std::int64_t channels = round_up(problem.group_in(), dense_vector(problem.type()));
    planar.w_strides = {channels * problem.taps(), problem.group_in() > 1 ? 1 : 0};
    std::int64_t next = channels;
    for (const int i : {2, 1, 0}) {
      planar.w_strides[2 + i] = problem.filter[i] == 1 ? 0 : next;
      next *= problem.filter[i];
    }
  }
  if (!is_deep(problem)) return planar;
  const std::int64_t plane = problem.in[1] * problem.in[2];
  planar.in = laid_flat(problem.in);
  planar.out = laid_flat(problem.out);
  planar.filter = {1, problem.filter[0], 1};
  planar.pad = {0, problem.pad[0], 0};
  planar.stride = {1, problem.stride[0], 1};
  planar.dilation = {1, problem.dilation[0], 1};
  for (Dims* const strides : {&planar.x_strides, &planar.y_strides, &planar.z_strides})
    *strides = laid_flat(*strides, plane);
  planar.w_strides[3] = std::exchange(planar.w_strides[2], 0);
  return planar;
}

Proposal behind_copied_filter(Proposal second, const ConvolutionProblem& problem) {
  if (!copies_filter(problem) || second.first().launch.empty) return second;
  return behind_copy(filter_tensor(problem), second, operands_of(problem).size());
}

Refusal planar_rows_refusal(const char* tensor, const Dims& strides, const Spatial& pixels,
                            DataType type) {
  if (pixels[2] > 1 && strides[4] != 1)
    return cat("the width stride of ", tensor, " is ", strides[4],
               "; expected 1, as channels-first layout has it");
  const std::int64_t vector = dense_vector(type);
  for (const auto& [stride, what] : {std::pair(strides[0], "batch"),
                                     {strides[1], "channel"},
                                     {strides[2], "depth"},
                                     {strides[3], "height"}})
    if (stride % vector != 0)
      return cat("the ", what, " stride of ", tensor, " is ", stride, "; expected a multiple of ",
                 vector, ", for copies of 16 bytes");
  return {};
}

TensorMapSpec planar_rows_map(const ConvolutionProblem& problem, int space, std::int64_t channels,
                              const Spatial& pixels, const Dims& strides,
                              const std::array<std::int64_t, 3>& box) {
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = 2 + space;
  map.sizes = {pixels[2], channels, pixels[1]};
  map.strides = {strides[1], strides[3]};
  map.box = {box[0], box[1], box[2], 1, 1};
  if (space == 3) {
    map.sizes[3] = pixels[0];
    map.strides[2] = strides[2];
  }
  map.sizes[map.rank - 1] = problem.batch;
  map.strides[map.rank - 2] = strides[0];
  // A dimension of size 1 gets any stride, because maps must not have a stride of 0.
  const std::int64_t row = round_up(pixels[2] * element, 16);
  for (int i = 1; i < map.rank; ++i)
    map.strides[i - 1] = map.sizes[i] == 1 ? row : map.strides[i - 1] * element;
  return map;
}

}  // namespace kiln
