#include "engines/rewrite/wgrad_channels_first_copies.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/rewrite/layout.hpp"

namespace kiln {
namespace {

constexpr std::int64_t alignment = 16, vector = 4;  // bytes, and elements of f32 in them

Spatial space_of(const Dims& dims) { return {dims[2], dims[3], dims[4]}; }
std::int64_t pixels_of(const Dims& dims) { return dims[2] * dims[3] * dims[4]; }

Refusal tensor_refusal(const Operand& operand) {
  if (operand.strides[1] != 1) return cat("the channels of ", operand.name, " are not contiguous");
  if (!in_line(operand.strides, space_of(operand.dims)))
    return cat("the pixels of ", operand.name, " are not equally far apart");
  if (pixels_of(operand.dims) > limit32 / 4)
    return cat(operand.name, " has ", pixels_of(operand.dims), " pixels; expected at most ",
               limit32 / 4);
  return {};
}

bool is_image(const Operand& operand) {
  const std::string_view name = operand.name;
  return name != "dw";
}

Refusal refusal(const ConvolutionProblem& problem) {
  if (problem.type() != KILN_DATA_FLOAT)
    return cat("the data type is ", name_of(problem.type()), "; this engine takes f32");
  if (problem.groups == 1 || problem.group_in() != 1 || problem.group_out() != 1)
    return cat(problem.group_in(), " input and ", problem.group_out(), " output channels in ",
               problem.groups, " groups; this engine takes one of each, in several groups");
  if (problem.batch == 0) return "the batch is empty";
  if (problem.alignment < alignment)
    return cat("the alignment is ", problem.alignment, " bytes; expected ", alignment,
               ", in which copies are made");
  for (const Operand& operand : operands_of(problem))
    if (is_image(operand))
      if (auto refused = tensor_refusal(operand)) return refused;
  return {};
}

// The copy counts places of an image as its channels, and channels as its pixels.
RelayoutTensor turned(const ConvolutionProblem& problem, const std::vector<Operand>& operands,
                      const Operand& operand) {
  RelayoutTensor tensor = relayout_tensor(problem, operands, operand.name);
  tensor.order = RelayoutTensor::Order::planes;
  tensor.channels = pixels_of(operand.dims);
  tensor.copied_channels = round_up(tensor.channels, vector);
  const Dims& strides = operand.strides;
  tensor.image_stride = strides[0];
  tensor.channel_stride = operand.dims[4] > 1   ? strides[4]
                          : operand.dims[3] > 1 ? strides[3]
                          : operand.dims[2] > 1 ? strides[2]
                                                : operand.dims[1];
  tensor.plane = tensor.copied = {1, 1, operand.dims[1]};
  tensor.row_strides = {0, 0, 1};
  tensor.cut = 0;
  tensor.span = (operand.dims[0] - 1) * tensor.image_stride +
                (tensor.channels - 1) * tensor.channel_stride + operand.dims[1];
  return tensor;
}

// The strides of a copy, whose channels begin at multiples of 16 bytes.
Dims channels_first(const Dims& dims) {
  const std::int64_t plane = round_up(pixels_of(dims), vector);
  const auto stride = [](std::int64_t size, std::int64_t value) { return size > 1 ? value : 0; };
  return {dims[1] * plane, plane, stride(dims[2], dims[3] * dims[4]), stride(dims[3], dims[4]),
          stride(dims[4], 1)};
}

// Any engine might choose copies with channels last, and these copies with channels first again.
constexpr const char* only_engine = "wgrad_depthwise_fma";

std::variant<RelayoutProblem, Refusal> channels_first_problem(const ConvolutionProblem& problem,
                                                              const InnerChoice& inner) {
  if (auto refused = refusal(problem)) return refused;
  RelayoutProblem out;
  out.inner = problem;
  out.engine = only_engine;
  out.inner.x_strides = channels_first(problem.x_dims());
  out.inner.y_strides = channels_first(problem.y_dims());
  const std::vector<Operand> operands = operands_of(problem);
  for (const Operand& operand : operands)
    if (is_image(operand)) out.tensors.push_back(turned(problem, operands, operand));
  out.cut.refusal = "a row of its copy is no row of pixels";
  if (auto refused = inner.refusal(out.inner, {.only_engine = out.engine})) return refused;
  return out;
}

}  // namespace

bool WgradChannelsFirstCopies::is_for(const Problem& problem) const {
  return WgradChannelsLastCopies::is_for(problem) &&
         std::get<ConvolutionProblem>(problem).groups > 1;
}

std::span<const RelayoutVariant> WgradChannelsFirstCopies::variants() const {
  static constexpr RelayoutVariant all[] = {{most_workspace, false},
                                            {least_relayout_budget, false}};
  return all;
}

std::variant<RelayoutProblem, Refusal> WgradChannelsFirstCopies::relayout(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant&) const {
  return channels_first_problem(problem, inner);
}

}  // namespace kiln
