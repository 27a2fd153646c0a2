#include "engines/rewrite/patches.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/rewrite/chunks.hpp"

namespace kiln {
namespace {

// The dense engines take strides up to this one.
constexpr std::int64_t most_dense_stride = 8;

std::int64_t bytes_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }

Refusal layout_refusal(const ConvolutionProblem& problem) {
  constexpr int channel = 1, column = 4, width = ConvolutionProblem::width;
  const auto side_by_side = [&](const char* tensor, const Dims& strides,
                                std::int64_t columns) -> Refusal {
    if ((problem.in_channels == 1 || strides[channel] == 1) &&
        (columns == 1 || strides[column] == problem.in_channels))
      return {};
    return cat("channels and columns of ", tensor, " do not follow each other, channels innermost");
  };
  if (auto refused = side_by_side("x", problem.x_strides, problem.in[width])) return refused;
  return side_by_side("w", problem.w_strides, problem.filter[width]);
}

Refusal patches_refusal(const ConvolutionProblem& problem) {
  constexpr int depth = ConvolutionProblem::depth, height = ConvolutionProblem::height,
                width = ConvolutionProblem::width;
  if (problem.groups > 1) return cat(problem.groups, " groups; this engine takes one");
  if (problem.in[depth] > 1 || problem.filter[depth] > 1 || problem.out[depth] > 1)
    return "three dimensions of space; this engine takes two";
  if (problem.filter[width] == 1 && problem.stride[height] <= most_dense_stride)
    return cat("the filter has one column and a stride of ", problem.stride[height],
               "; other engines take it as it lies");
  for (const int i : {height, width})
    if (problem.pad[i] != 0 || problem.filter[i] != problem.stride[i] ||
        problem.in[i] != problem.out[i] * problem.stride[i] ||
        (problem.filter[i] > 1 && problem.dilation[i] != 1))
      return "filters overlap, reach over the edge or leave pixels out; this engine takes patches";
  if (problem.mode == KILN_CONVOLUTION) return "a flipped filter; this engine takes none";
  const std::int64_t vector = channel_vector(problem.type()),
                     row = problem.in_channels * problem.filter[width];
  if (problem.in_channels % vector == 0 && problem.stride[height] <= most_dense_stride)
    return cat(problem.in_channels, " channels are a multiple of ", vector,
               "; other engines take them as they lie");
  if (row < vector) return cat(row, " channels in a row of a patch; expected at least ", vector);
  // A pixel's channels are for other engines to pad.
  if (row % vector != 0 && problem.filter[width] == 1)
    return cat(row, " channels of a pixel; expected a multiple of ", vector);
  if (problem.pass == ConvolutionPass::dgrad &&
      (problem.epilogue.residual || problem.bias_stride != 0))
    return "a data gradient with a bias or a residual";
  return layout_refusal(problem);
}

// Whether filters lie side by side along a row and a column, so that it is worth asking further.
bool has_patches(const Problem& problem) {
  const auto& convolution = std::get<ConvolutionProblem>(problem);
  constexpr int height = ConvolutionProblem::height, width = ConvolutionProblem::width;
  return convolution.filter[width] == convolution.stride[width] &&
         convolution.filter[height] == convolution.stride[height] &&
         (convolution.filter[width] > 1 || convolution.filter[height] > most_dense_stride);
}

std::int64_t stride_of(std::int64_t size, std::int64_t value) { return size > 1 ? value : 0; }

// Rows of patches as pixels of an image in two dimensions, whose channels an engine can pad.
ConvolutionProblem rows_as_pixels(const ConvolutionProblem& problem) {
  constexpr int width = ConvolutionProblem::width;
  const std::int64_t columns = problem.filter[width];
  ConvolutionProblem inner = problem;
  inner.in_channels = problem.in_channels * columns;
  inner.in[width] = problem.out[width];
  inner.filter[width] = inner.stride[width] = inner.dilation[width] = 1;
  inner.x_strides[1] = inner.w_strides[1] = 1;
  inner.x_strides[4] = stride_of(problem.out[width], inner.in_channels);
  inner.w_strides[4] = 0;
  return inner;
}

// The dense kernels have at most this many phases, which are rows of patches in a data gradient.
constexpr std::int64_t most_rows = 8;

// The most steps of a plan, each of which computes most_rows rows of all patches.
constexpr std::int64_t most_parts = 128;

// Some rows of all patches, and the problem of these.
struct Part {
  std::int64_t first, rows;
};
std::vector<Part> parts_of(const ConvolutionProblem& inner) {
  const std::int64_t rows = inner.filter[ConvolutionProblem::depth];
  const std::int64_t count = inner.pass == ConvolutionPass::dgrad ? ceil_div(rows, most_rows) : 1;
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = rows * i / count;
    parts.push_back({first, rows * (i + 1) / count - first});
  }
  return parts;
}

ConvolutionProblem problem_of(const ConvolutionProblem& inner, const Part& part) {
  constexpr int depth = ConvolutionProblem::depth;
  ConvolutionProblem problem = inner;
  problem.in[depth] = problem.filter[depth] = part.rows;
  if (inner.pass == ConvolutionPass::dgrad) problem.stride[depth] = part.rows;
  if (part.rows == 1) problem.x_strides[2] = problem.w_strides[2] = 0;
  // Parts begin at rows, wherever these lie.
  if (part.rows < inner.filter[depth])
    for (const auto& [stride, type] :
         {std::pair(inner.x_strides[2], inner.x_type), {inner.w_strides[2], inner.w_type}})
      problem.alignment = std::gcd(problem.alignment, stride * bytes_of(type));
  return problem;
}

RelayoutPlaces places_of(const ConvolutionProblem& inner, const Part& part) {
  RelayoutPlaces places;
  for (const Operand& operand : operands_of(inner)) {
    const std::string_view name = operand.name;
    const std::int64_t stride = name == "w"    ? inner.w_strides[2]
                                : name == "dx" ? inner.x_strides[2]
                                               : 0;
    places.operands.push_back({.first = part.first * stride * bytes_of(operand.type)});
  }
  return places;
}

}  // namespace

std::variant<ConvolutionProblem, Refusal> patches_as_pixels(const ConvolutionProblem& problem) {
  if (auto refused = patches_refusal(problem)) return refused;
  const std::int64_t rows = problem.filter[ConvolutionProblem::height],
                     columns = problem.filter[ConvolutionProblem::width];
  if (problem.in_channels * columns % channel_vector(problem.type()) != 0)
    return rows_as_pixels(problem);
  const Spatial& out = problem.out;
  ConvolutionProblem inner = problem;
  inner.rank = 3;
  inner.in_channels = problem.in_channels * columns;
  inner.in = {rows, out[1], out[2]};
  inner.filter = {rows, 1, 1};
  inner.stride = inner.dilation = {1, 1, 1};
  const std::int64_t row = problem.x_strides[3];
  inner.x_strides = {problem.x_strides[0], 1, stride_of(rows, row), stride_of(out[1], rows * row),
                     stride_of(out[2], inner.in_channels)};
  inner.w_strides = {problem.w_strides[0], 1, stride_of(rows, problem.w_strides[3]), 0, 0};
  return inner;
}

std::span<const RelayoutVariant> Patches::variants() const {
  static constexpr RelayoutVariant all[] = {{most_workspace, false}, {0, false}};
  return all;
}

std::variant<RelayoutRewrite::Result, Refusal> Patches::estimate_or_build(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    Extent extent) const {
  const auto answer = patches_as_pixels(problem);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return *refusal;
  const auto& pixels = std::get<ConvolutionProblem>(answer);
  if (const std::int64_t rows = pixels.filter[ConvolutionProblem::depth];
      problem.pass == ConvolutionPass::dgrad && rows > most_parts * most_rows)
    return Refusal{cat("patches have ", rows, " rows; expected at most ", most_parts * most_rows)};
  Result result;
  StepList steps;
  std::size_t workspace = 0;
  for (const Part& part : parts_of(pixels)) {
    const RelayoutChunk all{.images = pixels.batch, .rows = 1};
    ChunkChoices choices(problem_of(pixels, part), {}, variant.budget, inner);
    result.seconds += choices.seconds(all);
    workspace = std::max(workspace, choices.workspace(all));
    if (extent == Extent::steps)
      append_relayout(steps, choices.proposal(all), places_of(pixels, part));
  }
  if (extent == Extent::steps) {
    auto& [first, launch] = steps.steps.front();
    first.tile = cat("patches as pixels for ", describe(name_of(first, launch)));
    first.engine = name();
    result.proposal = Proposal(std::move(steps), 0);
  }
  // Rows of patches are phases of a data gradient, which all read dy. That goes beyond what the
  // estimates of other data gradients were fitted to: an H200 took 0.95 to 1.08 times as long.
  constexpr double rows_share = 1.1;
  const bool as_phases =
      pixels.rank == 3 || problem.filter[ConvolutionProblem::height] <= most_dense_stride;
  if (problem.pass == ConvolutionPass::dgrad && as_phases) result.seconds *= rows_share;
  result.proposal.workspace = workspace;
  return result;
}

bool PatchesNhwc::is_for(const Problem& problem) const {
  return is_gather(problem) && has_patches(problem);
}

bool WgradPatchesNhwc::is_for(const Problem& problem) const {
  return is_wgrad(problem) && has_patches(problem);
}

}  // namespace kiln
