#include "engines/rewrite/product_views.hpp"

#include <algorithm>
#include <utility>

#include "core/integer.hpp"

namespace kiln {
namespace {

// From one element to the next along a dimension, where it has several.
bool side_by_side(std::int64_t stride, std::int64_t size) { return size < 2 || stride == 1; }

// A matrix as pixels with channels.
struct Pixels {
  std::int64_t pixel, channel, group;  // strides, in elements
  static Pixels rows(const MatrixStrides& m) { return {m.row, m.column, m.batch}; }
  static Pixels columns(const MatrixStrides& m) { return {m.column, m.row, m.batch}; }
  // Whether pixels lie side by side, and channels do not.
  bool planar(std::int64_t pixels, std::int64_t channels) const {
    return pixels > 1 && pixel == 1 && !side_by_side(channel, channels);
  }
};

// Where pixels of no matrix lie side by side they are images, so that one kernel serves every
// number of them; else the columns of one image.
void set_space(ConvolutionProblem& problem, std::int64_t pixels, bool as_columns) {
  constexpr int width = ConvolutionProblem::width;
  problem.rank = 1;
  problem.in = problem.filter = problem.out = {1, 1, 1};
  problem.batch = as_columns ? 1 : pixels;
  if (as_columns) problem.in[width] = problem.out[width] = pixels;
}

Dims strides_of(const Pixels& m, std::int64_t pixels, std::int64_t channels, bool as_columns) {
  const std::int64_t channel = channels > 1 ? m.channel : 0;
  if (!as_columns) return {m.pixel, channel, 0, 0, 0};
  const std::int64_t pixel = pixels > 1 ? m.pixel : 0;
  return {std::max<std::int64_t>({pixel * pixels, channel * channels, 1}), channel, 0, 0, pixel};
}

ConvolutionProblem common(const MatmulProblem& p) {
  ConvolutionProblem problem;
  problem.x_type = problem.w_type = problem.y_type = p.type;
  problem.math = p.math;
  problem.alignment = p.alignment;
  problem.epilogue = p.epilogue;
  problem.bias_stride = p.bias_stride;
  problem.groups = std::max<std::int64_t>(p.batch, 1);
  return problem;
}

// A product `result` = source * filter, whose result's rows are the pixels: a forward pass where
// filter's columns, the convolution's filters, have their elements side by side, else a data
// gradient.
struct Sides {
  MatrixStrides source, filter, result, z;
  std::int64_t pixels, channels, reduction;
  bool source_is_a;
};

ProductView gather_view(const MatmulProblem& p, const Sides& sides) {
  const auto& [source, filter, result, z, pixels, channels, reduction, source_is_a] = sides;
  const bool backward =
      !side_by_side(filter.row, reduction) && side_by_side(filter.column, channels);
  const Pixels from = Pixels::rows(source), to = Pixels::rows(result);
  const bool as_columns =
      pixels > 0 && p.batch > 0 && (from.planar(pixels, reduction) || to.planar(pixels, channels));

  ConvolutionProblem problem = common(p);
  set_space(problem, p.batch == 0 ? 0 : pixels, as_columns);
  const std::int64_t groups = problem.groups;
  // clang 14 captures no structured binding.
  const auto dims = [groups, as_columns, count = pixels](const Pixels& matrix, std::int64_t each) {
    return strides_of(matrix, count, each * groups, as_columns);
  };
  if (p.epilogue.residual) problem.z_strides = dims(Pixels::rows(z), channels);
  GroupStrides group{source.batch, filter.batch, result.batch, z.batch};
  if (backward) {
    problem.pass = ConvolutionPass::dgrad;
    problem.x_type = p.d_type;
    problem.in_channels = channels * groups;
    problem.out_channels = reduction * groups;
    problem.x_strides = dims(to, channels);
    problem.y_strides = dims(from, reduction);
    problem.w_strides = {filter.row, channels > 1 ? filter.column : 0};
    std::swap(group.x, group.y);
  } else {
    problem.y_type = p.d_type;
    problem.in_channels = reduction * groups;
    problem.out_channels = channels * groups;
    problem.x_strides = dims(from, reduction);
    problem.y_strides = dims(to, channels);
    problem.w_strides = {filter.column, reduction > 1 ? filter.row : 0};
  }
  if (groups > 1) problem.group_strides = group;
  // A forward pass reads its source first, a data gradient its filter.
  return {problem, source_is_a == backward};
}

MatrixStrides transposed(const MatrixStrides& m) { return {m.batch, m.column, m.row}; }

// Rows of d are pixels.
ProductView by_rows(const MatmulProblem& p) {
  return gather_view(p, {p.a, p.b, p.d, p.z, p.rows, p.columns, p.inner, true});
}

// Columns of d are pixels: d transposed = b transposed * a transposed.
ProductView by_columns(const MatmulProblem& p) {
  ProductView view = gather_view(p, {transposed(p.b), transposed(p.a), transposed(p.d),
                                     transposed(p.z), p.columns, p.rows, p.inner, false});
  view.tile = ", columns as pixels";
  return view;
}

// d, or d transposed, is the gradient of a filter: the sum of dy transposed * x.
ProductView as_filter(const MatmulProblem& p, bool transpose) {
  const Pixels dy = transpose ? Pixels::rows(p.b) : Pixels::columns(p.a);
  const Pixels x = transpose ? Pixels::columns(p.a) : Pixels::rows(p.b);
  const std::int64_t filters = transpose ? p.columns : p.rows,
                     channels = transpose ? p.rows : p.columns;
  const bool as_columns = dy.planar(p.inner, filters) || x.planar(p.inner, channels);
  ConvolutionProblem problem = common(p);
  problem.pass = ConvolutionPass::wgrad;
  problem.w_type = p.d_type;
  set_space(problem, p.inner, as_columns);
  const std::int64_t groups = problem.groups;
  problem.in_channels = channels * groups;
  problem.out_channels = filters * groups;
  problem.x_strides = strides_of(x, p.inner, channels * groups, as_columns);
  problem.y_strides = strides_of(dy, p.inner, filters * groups, as_columns);
  const Pixels dw = transpose ? Pixels::columns(p.d) : Pixels::rows(p.d);
  problem.w_strides = {dw.pixel, channels > 1 ? dw.channel : 0};
  if (groups > 1) problem.group_strides = GroupStrides{x.group, p.d.batch, dy.group, 0};
  return {problem, !transpose, transpose ? ", d transposed as filter" : ", d as filter"};
}

}  // namespace

std::vector<ProductView> product_views(const MatmulProblem& p) {
  std::vector<ProductView> views{by_rows(p)};
  const ConvolutionEpilogue& epilogue = p.epilogue;
  if (p.rows == 0 || p.batch == 0 || epilogue.bias) return views;
  const bool a_by_rows = side_by_side(p.a.column, p.inner),
             b_by_rows = side_by_side(p.b.column, p.columns),
             d_by_rows = side_by_side(p.d.column, p.columns);
  const bool b_by_columns = side_by_side(p.b.row, p.inner);
  // The tensor cores multiply f32 only where the inner dimension lies side by side, or through
  // registers, as they do where pixels do.
  const bool turned = p.type == KILN_DATA_FLOAT && b_by_rows && !b_by_columns;
  if (!a_by_rows || !d_by_rows || turned) views.push_back(by_columns(p));
  if (epilogue != ConvolutionEpilogue{}) return views;
  // Filter gradients split the inner dimension among blocks, which is worth it for few tiles.
  constexpr std::int64_t long_inner = 2048, few_results = 1 << 20;
  const bool few = p.inner >= long_inner && p.rows <= few_results / p.columns;
  if (p.batch > 1) return views;
  if ((!a_by_rows && b_by_rows) || (few && a_by_rows && b_by_columns))
    views.push_back(as_filter(p, !d_by_rows));
  return views;
}

std::int64_t rows_above(std::int64_t rows, std::int64_t& least) {
  std::int64_t step = 32;
  while (rows > 8 * step) step *= 2;
  const std::int64_t reference = ceil_div(rows, step) * step;
  least = reference - step + 1;
  return reference;
}

void name_operands(Proposal& proposal, const ProductView& view) {
  proposal.first().kernel.tile += view.tile;
  if (!view.exchanged) return;
  const auto exchange = [](std::uint8_t& operand) {
    if (operand < 2) operand ^= 1;
  };
  for (Step& step : proposal.steps) {
    for (LaunchSpec::Patch& patch : step.launch.patches)
      if (patch.hole == LaunchSpec::Hole::operand) exchange(patch.operand);
    for (LaunchSpec::Map& map : step.launch.maps) exchange(map.operand);
  }
}

}  // namespace kiln
