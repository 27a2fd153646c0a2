#include "engines/conv/relaid/slices.hpp"

#include "core/text.hpp"

namespace kiln {
namespace {

constexpr std::int64_t unit_bytes = 16, most_slices = 16;

std::int64_t channels_of(const ConvolutionProblem& problem, const RelaidSlices& slices) {
  return (slices.of_x ? problem.in_channels : problem.out_channels) / slices.count;
}

}  // namespace

std::vector<RelaidSlices> slices_of(const ConvolutionProblem& problem, bool of_x) {
  std::vector<RelaidSlices> all;
  if (problem.groups > 1) return all;
  const std::int64_t channels = of_x ? problem.in_channels : problem.out_channels,
                     vector = unit_bytes / static_cast<std::int64_t>(size_of(problem.type()));
  for (std::int64_t count = 2; count <= most_slices; ++count)
    if (channels % (count * vector) == 0) all.push_back({of_x, count});
  return all;
}

ConvolutionProblem slice_of(const ConvolutionProblem& problem, const RelaidSlices& slices) {
  ConvolutionProblem slice = problem;
  (slices.of_x ? slice.in_channels : slice.out_channels) = channels_of(problem, slices);
  return slice;
}

RelaidPlaces places_of(const ConvolutionProblem& problem, const RelaidSlices& slices,
                       std::int64_t number) {
  const std::int64_t channel = number * channels_of(problem, slices);
  const auto bytes = [&](std::int64_t stride, DataType type) {
    return channel * stride * static_cast<std::int64_t>(size_of(type));
  };
  RelaidPlaces places;
  places.operands.resize(3);  // x, dy, dw
  if (slices.of_x) {
    places.operands[0].first = bytes(problem.x_strides[1], problem.x_type);
    places.operands[2].first = bytes(problem.w_strides[1], problem.w_type);
  } else {
    places.operands[1].first = bytes(problem.y_strides[1], problem.y_type);
    places.operands[2].first = bytes(problem.w_strides[0], problem.w_type);
  }
  return places;
}

std::string describe(const ConvolutionProblem& problem, const RelaidSlices& slices) {
  return cat(channels_of(problem, slices), " channels of ", slices.of_x ? "x" : "dy");
}

}  // namespace kiln
