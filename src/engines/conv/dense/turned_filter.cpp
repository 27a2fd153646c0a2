#include "engines/conv/dense/turned_filter.hpp"

#include <array>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "engines/conv/relayout/copies.hpp"
#include "engines/engine.hpp"

namespace kiln {
namespace {

// The filter seen as one image: its channels are the filters, its pixels the elements of a filter.
RelayoutTensor filter_tensor(const ConvolutionProblem& problem) {
  constexpr std::uint8_t w = 0;  // its index among the operands of a data gradient
  RelayoutTensor tensor;
  tensor.operand = w;
  tensor.type = problem.type();
  tensor.images = tensor.copied_images = 1;
  tensor.channels = tensor.copied_channels = problem.out_channels;
  tensor.channel_stride = problem.w_strides[0];
  tensor.plane = tensor.copied = {1, problem.taps(), problem.group_in()};
  tensor.span =
      (problem.out_channels - 1) * problem.w_strides[0] + problem.taps() * problem.group_in();
  return tensor;
}

// Whether the elements of each filter are contiguous, channels innermost.
bool is_line(const ConvolutionProblem& problem) {
  if (problem.group_in() > 1 && problem.w_strides[1] != 1) return false;
  std::int64_t next = problem.group_in();
  for (const int i : {2, 1, 0}) {
    if (problem.filter[i] > 1 && problem.w_strides[2 + i] != next) return false;
    next *= problem.filter[i];
  }
  return true;
}

std::array<RelayoutMove, 1> moves_of(const RelayoutTensor& filter) {
  return {RelayoutMove{.tensor = &filter, .in = whole_images(filter, 1)}};
}

}  // namespace

bool turns_filter(const ConvolutionProblem& problem) {
  return problem.type() == KILN_DATA_FLOAT && problem.pass == ConvolutionPass::dgrad &&
         problem.w_strides[0] != 1 && !problem.group_strides;
}

Refusal turned_filter_refusal(const ConvolutionProblem& problem) {
  if (!is_line(problem))
    return "in w neither filters are contiguous nor all elements of a filter, channels innermost";
  if (const std::size_t bytes = turned_filter_bytes(problem); bytes > most_workspace)
    return cat("the turned filter has ", bytes, " bytes; expected at most the largest workspace, ",
               most_workspace);
  return {};
}

std::size_t turned_filter_bytes(const ConvolutionProblem& problem) {
  return turns_filter(problem) ? filter_tensor(problem).image_bytes() : 0;
}

double turned_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (!turns_filter(problem)) return 0;
  return copies_seconds(moves_of(filter_tensor(problem)), device);
}

ConvolutionProblem with_turned_filter(const ConvolutionProblem& problem) {
  if (!turns_filter(problem)) return problem;
  ConvolutionProblem turned = problem;
  turned.w_strides[0] = 1;
  turned.w_strides[1] = problem.group_in() > 1 ? problem.out_channels : 0;
  std::int64_t next = problem.out_channels * problem.group_in();
  for (const int i : {2, 1, 0}) {
    turned.w_strides[2 + i] = problem.filter[i] == 1 ? 0 : next;
    next *= problem.filter[i];
  }
  return turned;
}

Proposal behind_turned_filter(Proposal second, const ConvolutionProblem& problem) {
  if (!turns_filter(problem) || second.first().launch.empty) return second;
  return behind_copy(filter_tensor(problem), second, operands_of(problem).size());
}

}  // namespace kiln
