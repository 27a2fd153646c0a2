#include "engines/rewrite/cut.hpp"

#include <algorithm>
#include <numeric>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/engine.hpp"
#include "engines/rewrite/layout.hpp"

namespace kiln {
namespace {

std::int64_t extent(const ConvolutionProblem& inner, std::size_t dim) {
  return (inner.filter[dim] - 1) * inner.dilation[dim] + 1;
}

// Data gradients: how many rows of dy before row r / stride the rows of dx from r on need.
std::int64_t rows_before(const ConvolutionProblem& inner, std::size_t dim) {
  const std::int64_t stride = inner.stride[dim], pad = inner.pad[dim],
                     reach = extent(inner, dim) - 1 - pad;
  // The quotient rounded down. A part's padding must not be below 0.
  const std::int64_t before = reach >= 0 ? reach / stride : -ceil_div(-reach, stride);
  return std::max(before, -(pad / stride));
}

// The padding of parts, before their first row.
std::int64_t padding(const ConvolutionProblem& inner, std::size_t dim) {
  if (inner.pass != ConvolutionPass::dgrad) return 0;
  return inner.pad[dim] + rows_before(inner, dim) * inner.stride[dim];
}

// The rows of x or dy that so many rows of the result need.
std::int64_t rows_needed(const ConvolutionProblem& inner, std::size_t dim, std::int64_t rows) {
  const std::int64_t stride = inner.stride[dim];
  if (inner.pass == ConvolutionPass::dgrad) return (rows - 1 + padding(inner, dim)) / stride + 1;
  return (rows - 1) * stride + extent(inner, dim);
}

// Whether it is the tensor of which neighbouring parts need the same rows.
bool is_read(const ConvolutionProblem& inner, const RelayoutTensor& tensor) {
  constexpr std::uint8_t x = 0;
  return tensor.role == RelayoutTensor::Role::source &&
         (inner.pass != ConvolutionPass::wgrad || tensor.operand == x);
}

const Spatial& rows_of(const ConvolutionProblem& inner) {
  return inner.pass == ConvolutionPass::dgrad ? inner.in : inner.out;
}

// Changes a size along the cut. Copies lie without gaps; so does a tensor with channels last that
// is not copied, and no second image follows.
void resize(Dims& strides, std::int64_t& size, std::size_t dim, std::int64_t to) {
  if (strides[1] == 1) strides[0] = strides[2 + dim] * to;
  if (to == 1) strides[2 + dim] = 0;
  size = to;
}

Refusal refusal(const ConvolutionProblem& inner, const RelayoutCut& cut,
                const std::vector<RelayoutTensor>& copied,
                const std::vector<RelayoutTensor>& as_they_lie) {
  if (inner.in[cut.dim] == 1 || inner.out[cut.dim] == 1) return "an image has one row";
  for (const std::vector<RelayoutTensor>* tensors : {&copied, &as_they_lie})
    for (const RelayoutTensor& tensor : *tensors)
      for (std::size_t i = 0; i < cut.dim; ++i)
        if (tensor.plane[i] > 1) return "the rows of a part do not lie side by side";
  for (const RelayoutTensor& tensor : as_they_lie)
    if (is_read(inner, tensor) && (extent(inner, cut.dim) > 1 || inner.pad[cut.dim] > 0))
      return "its input is not copied, and parts would need padding";
  if (cut.granule >= cut.rows)
    return cat("parts would begin at multiples of ", cut.granule, " rows of ", cut.rows);
  return {};
}

// The least multiple of `granule` rows of a tensor that begin at multiples of 16 bytes. A dy with
// its channels first is read in lines of 128 bytes.
std::int64_t whole_rows(const ConvolutionProblem& inner, const RelayoutCut& cut,
                        const RelayoutTensor& tensor) {
  std::int64_t row = tensor.row_strides[cut.dim] * static_cast<std::int64_t>(size_of(tensor.type));
  if (is_read(inner, tensor)) row *= inner.stride[cut.dim];
  const std::int64_t unit = inner.pass == ConvolutionPass::wgrad && is_planar(tensor) ? 128 : 16;
  return std::lcm(cut.granule, unit / std::gcd(unit, row));
}

}  // namespace

RelayoutCut cut_of(const ConvolutionProblem& inner, const std::vector<RelayoutTensor>& copied,
                   const std::vector<RelayoutTensor>& as_they_lie) {
  RelayoutCut cut;
  while (cut.dim < 2 && inner.in[cut.dim] == 1 && inner.out[cut.dim] == 1) ++cut.dim;
  cut.rows = rows_of(inner)[cut.dim];
  // Parts of a data gradient have the same padding if their rows are at the same place of a stride.
  cut.granule = inner.pass == ConvolutionPass::dgrad ? inner.stride[cut.dim] : 1;
  for (const RelayoutTensor& tensor : as_they_lie) cut.granule = whole_rows(inner, cut, tensor);
  cut.refusal = refusal(inner, cut, copied, as_they_lie).reason;
  if (!cut.refusal.empty()) cut.granule = 0;
  return cut;
}

ConvolutionProblem part_of(const ConvolutionProblem& inner, const RelayoutCut& cut,
                           const RelayoutChunk& chunk) {
  ConvolutionProblem part = inner;
  part.batch = chunk.images;
  if (chunk.rows == cut.rows) return part;
  const std::size_t dim = cut.dim;
  const std::int64_t read = rows_needed(inner, dim, chunk.rows);
  const bool dgrad = inner.pass == ConvolutionPass::dgrad;
  part.pad[dim] = padding(inner, dim);
  resize(part.x_strides, part.in[dim], dim, dgrad ? chunk.rows : read);
  resize(part.y_strides, part.out[dim], dim, dgrad ? read : chunk.rows);
  std::int64_t ignored = 0;
  if (part.epilogue.residual) resize(part.z_strides, ignored, dim, chunk.rows);
  return part;
}

RelayoutRange range_of(const ConvolutionProblem& inner, const RelayoutCut& cut,
                       const RelayoutTensor& tensor, const RelayoutChunk& chunk) {
  RelayoutRange range{chunk.first, chunk.images, chunk.row, chunk.rows};
  if (!is_read(inner, tensor)) return range;
  if (chunk.rows == cut.rows) {
    range.rows = tensor.copied[cut.dim];
    return range;
  }
  const std::int64_t stride = inner.stride[cut.dim];
  range.rows = rows_needed(inner, cut.dim, chunk.rows);
  range.row = inner.pass == ConvolutionPass::dgrad
                  ? chunk.row / stride - rows_before(inner, cut.dim)
                  : chunk.row * stride - inner.pad[cut.dim];
  return range;
}

}  // namespace kiln
