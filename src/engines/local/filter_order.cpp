#include "engines/local/filter_order.hpp"

#include <algorithm>

namespace kiln {
namespace {

struct Axis {
  std::int64_t size, stride;
};

// The stride of several axes (outermost first) seen as one axis; 0 where they do not form one, as
// where one is broadcast, and 1 for a single element.
std::int64_t joined(const std::vector<Axis>& axes) {
  std::int64_t stride = 0, next = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->size == 1) continue;
    if (axis->stride == 0) return 0;
    if (stride == 0)
      stride = axis->stride;
    else if (axis->stride != next)
      return 0;
    next = axis->stride * axis->size;
  }
  return next == 0 ? 1 : stride;
}

}  // namespace

std::optional<FilterOrder> filter_order(const LocalProblem& problem) {
  const ConvolutionProblem& conv = problem.conv;
  const Dims dims = conv.w_dims();
  const Dims& strides = conv.w_strides;
  const Axis channel{dims[1], strides[1]}, t{dims[2], strides[2]}, r{dims[3], strides[3]},
      s{dims[4], strides[4]};
  FilterOrder order;
  order.column_stride = joined({channel, t, r, s});
  if (order.column_stride == 0) {
    order.taps_inner = false;
    order.column_stride = joined({t, r, s, channel});
  }
  if (order.column_stride == 0) return std::nullopt;
  order.rows_inner = order.column_stride != 1;
  if (order.rows_inner && strides[0] != 1) return std::nullopt;

  // A vector begins at a multiple of its size wherever a filter or a pixel's weights begin.
  const std::int64_t columns = conv.group_in() * conv.taps();
  const OuterDims& outer = problem.outer_strides;
  std::int64_t vector =
      std::min<std::int64_t>(16, conv.alignment) /
      static_cast<std::int64_t>(std::max(size_of(conv.type()), size_of(conv.w_type)));
  const auto fits = [&](std::int64_t stride) { return stride % vector == 0; };
  while (vector > 1 && !(std::all_of(outer.begin(), outer.end(), fits) &&
                         (order.rows_inner ? fits(conv.group_out()) && fits(order.column_stride)
                                           : fits(columns) && fits(strides[0]))))
    vector /= 2;
  order.vector = static_cast<int>(std::max<std::int64_t>(vector, 1));
  return order;
}

Refusal no_filter_order() {
  return {
      "neither the filters of a pixel's weights are contiguous (stride 1), nor its channels and "
      "taps; expected one of them"};
}

void add_filter_order(KernelSpec& kernel, const FilterOrder& order, const LocalProblem& problem) {
  kernel.constants.push_back(
      {"TAPS_INNER", order.taps_inner, "columns are ordered [channel][tap]"});
  kernel.constants.push_back({"ROWS_INNER", order.rows_inner, "filters are contiguous"});
  kernel.constants.push_back({"COLUMN_STRIDE", order.column_stride, ""});
  kernel.alignment = static_cast<std::size_t>(order.vector) * size_of(problem.conv.w_type);
}

}  // namespace kiln
