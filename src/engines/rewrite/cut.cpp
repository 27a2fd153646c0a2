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
void resize(Dims& strides, Spatial& sizes, std::size_t dim, std::int64_t to) {
  if (strides[1] == 1) {
    std::int64_t next = strides[2 + dim] * to;
    for (std::size_t outer = dim; outer-- > 0;) {
      if (sizes[outer] > 1) strides[2 + outer] = next;
      next *= sizes[outer];
    }
    strides[0] = next;
  }
  if (to == 1) strides[2 + dim] = 0;
  sizes[dim] = to;
}

// Whether an image has planes, or rows, outside of the cut.
bool has_outer(const RelayoutTensor& tensor, std::size_t dim) {
  return std::any_of(tensor.plane.begin(), tensor.plane.begin() + static_cast<std::ptrdiff_t>(dim),
                     [](std::int64_t size) { return size > 1; });
}

// Rows of several planes are copied as if each plane were an image.
Refusal outer_refusal(const RelayoutCut& cut, const std::vector<RelayoutTensor>& copied,
                      const std::vector<RelayoutTensor>& as_they_lie) {
  for (const RelayoutTensor& tensor : copied)
    if (has_outer(tensor, cut.dim) &&
        (!cut.even || !is_planar(tensor) || tensor.pixels != RelayoutTensor::Pixels::all ||
         tensor.copied_channels == 1))
      return "the rows of a part do not lie side by side";
  for (const RelayoutTensor& tensor : as_they_lie)
    if (has_outer(tensor, cut.dim) && (!cut.even || !is_planar(tensor)))
      return "the rows of a part do not lie side by side";
  return {};
}

Refusal refusal(const ConvolutionProblem& inner, const RelayoutCut& cut,
                const std::vector<RelayoutTensor>& copied,
                const std::vector<RelayoutTensor>& as_they_lie) {
  if (inner.in[cut.dim] == 1 || inner.out[cut.dim] == 1) return "an image has one row";
  if (auto refused = outer_refusal(cut, copied, as_they_lie)) return refused;
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

RelayoutCut cut_along(const ConvolutionProblem& inner, RelayoutCut cut,
                      const std::vector<RelayoutTensor>& copied,
                      const std::vector<RelayoutTensor>& as_they_lie) {
  cut.rows = rows_of(inner)[cut.dim];
  // Parts of a data gradient have the same padding if their rows are at the same place of a stride.
  cut.granule = inner.pass == ConvolutionPass::dgrad ? inner.stride[cut.dim] : 1;
  for (const RelayoutTensor& tensor : as_they_lie) cut.granule = whole_rows(inner, cut, tensor);
  cut.refusal = refusal(inner, cut, copied, as_they_lie).reason;
  if (!cut.refusal.empty()) cut.granule = 0;
  return cut;
}

}  // namespace

RelayoutCut cut_of(const ConvolutionProblem& inner, const std::vector<RelayoutTensor>& copied,
                   const std::vector<RelayoutTensor>& as_they_lie) {
  RelayoutCut cut;
  while (cut.dim < 2 && inner.in[cut.dim] == 1 && inner.out[cut.dim] == 1) ++cut.dim;
  return cut_along(inner, cut, copied, as_they_lie);
}

RelayoutCut cut_inside_planes(const ConvolutionProblem& inner,
                              const std::vector<RelayoutTensor>& copied,
                              const std::vector<RelayoutTensor>& as_they_lie) {
  RelayoutCut cut;
  cut.dim = ConvolutionProblem::height;
  cut.even = true;
  return cut_along(inner, cut, copied, as_they_lie);
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
  Spatial of_z = rows_of(inner);
  if (part.epilogue.residual) resize(part.z_strides, of_z, dim, chunk.rows);
  resize(part.x_strides, part.in, dim, dgrad ? chunk.rows : read);
  resize(part.y_strides, part.out, dim, dgrad ? read : chunk.rows);
  return part;
}

RelayoutRange range_of(const ConvolutionProblem& inner, const RelayoutCut& cut,
                       const RelayoutTensor& tensor, const RelayoutChunk& chunk) {
  RelayoutRange range{chunk.first, chunk.images, chunk.row, chunk.rows};
  if (chunk.rows != cut.rows)
    for (std::size_t i = 0; i < cut.dim; ++i) range.planes *= tensor.copied[i];
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
