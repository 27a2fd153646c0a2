#include "engines/rewrite/slices.hpp"

#include <string_view>
#include <utility>

#include "codegen/loops.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

constexpr std::int64_t unit_bytes = 16, most_slices = 16;

// By what factor the estimate of slices is raised. On an H200, filter gradients took 1.08 to 1.7
// times their estimates without it; the forward pass and the data gradient, whose slices leave
// multiprocessors idle, took 0.93 to 1.8 times as long.
double margin_of(const ConvolutionProblem& problem) {
  return problem.pass == ConvolutionPass::wgrad ? 1.15 : 1.6;
}

std::int64_t channels_of(const ConvolutionProblem& problem, const RelayoutSlices& slices) {
  return (slices.of_x ? problem.in_channels : problem.out_channels) / slices.count;
}

// The stride, in elements, of the channels that slices divide; 0 if the operand has all of them in
// every slice.
std::int64_t sliced_stride(const RelayoutSlices& slices, const Operand& operand) {
  const std::string_view name = operand.name;
  if (name == "w" || name == "dw") return operand.strides[slices.of_x ? 1 : 0];
  if (name == "z" || name == "bias") return operand.strides[1];
  return (name == "x" || name == "dx") == slices.of_x ? operand.strides[1] : 0;
}

// Where slice `number` begins in the caller's tensors.
RelayoutPlaces places_of(const ConvolutionProblem& problem, const RelayoutSlices& slices,
                         std::int64_t number) {
  const std::int64_t channel = number * channels_of(problem, slices);
  RelayoutPlaces places;
  for (const Operand& operand : operands_of(problem))
    places.operands.push_back({.first = channel * sliced_stride(slices, operand) *
                                        static_cast<std::int64_t>(size_of(operand.type))});
  return places;
}

}  // namespace

std::vector<RelayoutSlices> slices_of(const ConvolutionProblem& problem, bool of_x) {
  std::vector<RelayoutSlices> all;
  if (problem.groups > 1) return all;
  if (problem.pass != ConvolutionPass::wgrad) of_x = problem.pass == ConvolutionPass::dgrad;
  const std::int64_t channels = of_x ? problem.in_channels : problem.out_channels,
                     vector = unit_bytes / static_cast<std::int64_t>(size_of(problem.type()));
  for (std::int64_t count = 2; count <= most_slices; ++count)
    if (channels % (count * vector) == 0) all.push_back({of_x, count});
  return all;
}

ConvolutionProblem slice_of(const ConvolutionProblem& problem, const RelayoutSlices& slices) {
  ConvolutionProblem slice = problem;
  (slices.of_x ? slice.in_channels : slice.out_channels) = channels_of(problem, slices);
  return slice;
}

bool is_shared(const ConvolutionProblem& problem, const RelayoutSlices& slices,
               std::size_t operand) {
  return sliced_stride(slices, operands_of(problem)[operand]) == 0;
}

std::string describe(const ConvolutionProblem& problem, const RelayoutSlices& slices) {
  const char* const x = problem.pass == ConvolutionPass::dgrad ? "dx" : "x";
  const char* const y = problem.pass == ConvolutionPass::fprop ? "y" : "dy";
  return cat(channels_of(problem, slices), " channels of ", slices.of_x ? x : y);
}

void repeat_slices(Proposal& proposal, double& seconds, const ConvolutionProblem& problem,
                   const RelayoutSlices& slices, const SliceCopies& copies,
                   const DeviceDescription& device) {
  const auto seconds_of = [&](std::span<const RelayoutMove> moves) {
    return moves.empty() ? 0 : copies_seconds(moves, device);
  };
  const double next = seconds - seconds_of(copies.first) + seconds_of(copies.others);
  seconds = (seconds + static_cast<double>(slices.count - 1) * next) * margin_of(problem);
  if (proposal.first().kernel.entry.empty()) return;
  StepList steps, other{proposal.steps, proposal.loops};
  append_relayout(steps, proposal, places_of(problem, slices, 0));
  const KernelSpec& named = steps.steps.front().kernel;
  if (copies.others.empty())
    drop_first(other);
  else
    other.steps.front() = copies_step(copies.others, copies.engine, named.tile);
  const auto slice = [&](std::int64_t number) {
    StepList placed;
    append_relayout(placed, other, places_of(problem, slices, number));
    return placed;
  };
  StepList others = slice(1);
  if (slices.count > 2) repeat(others, slice(2), slices.count - 1);
  append(steps, std::move(others));
  proposal = Proposal(std::move(steps), proposal.workspace);
}

}  // namespace kiln
