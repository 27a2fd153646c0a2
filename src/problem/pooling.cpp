#include "problem/pooling.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "problem/line/shape_line.hpp"
#include "problem/tensor/checks.hpp"

namespace kiln {
namespace {

// Number of outputs along a dimension of `in` elements; below 1 if the window does not fit.
std::int64_t outputs(const PoolingSpec& spec, int i, std::int64_t in) {
  const std::int64_t before = spec.pad_before[i], after = spec.pad_after[i];
  const std::int64_t stride = spec.stride[i], window = spec.window[i], dilation = spec.dilation[i];
  if (!spec.ceil)
    return output_size(in, before, after + spec.overhang[i], window, stride, dilation);
  // Rounded up, unless the last window would begin beyond x and the padding before it.
  const std::int64_t up = output_size(in, before, after + stride - 1, window, stride, dilation);
  return up > 1 && (up - 1) * stride >= in + before ? up - 1 : up;
}

// A problem from the shapes of x (or dx) and y (or dy), without strides.
PoolingProblem make(const PoolingSpec& spec, const Tensor& x, const char* x_name, const Tensor& y,
                    const char* y_name) {
  check_given(x, x_name);
  check_given(y, y_name);
  check_same_type(y, y_name, x, x_name);
  const TensorDims out = pooling_output_dims(spec, x, x_name);
  Tensor expected = x;
  expected.dims = out;
  if (y.rank != x.rank || y.dims != expected.dims)
    fail(KILN_STATUS_BAD_PARAM, y_name, " has sizes ", sizes_text(y), "; the pooling of ", x_name,
         " gives ", sizes_text(expected));
  PoolingProblem problem;
  problem.type = x.type;
  problem.rank = spec.spatial;
  problem.batch = x.dims[0];
  problem.channels = x.dims[1];
  problem.mode = spec.mode;
  problem.nan = spec.mode == KILN_POOLING_MAX ? spec.nan : KILN_PROPAGATE_NAN;
  problem.in = problem.out = problem.window = {1, 1, 1};
  const int missing = 3 - spec.spatial;
  for (int i = 0; i < spec.spatial; ++i) {
    problem.in[i + missing] = x.dims[i + 2];
    problem.out[i + missing] = y.dims[i + 2];
    problem.window[i + missing] = spec.window[i];
    problem.pad[i + missing] = spec.pad_before[i];
    problem.stride[i + missing] = spec.stride[i];
    problem.dilation[i + missing] = spec.dilation[i];
    if (spec.mode == KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING)
      problem.overhang[i + missing] =
          std::max<std::int64_t>(problem.end(i + missing) - (x.dims[i + 2] + spec.pad_after[i]), 0);
  }
  return problem;
}

Dims strides_of(const Tensor& tensor) { return make_operand("", tensor).strides; }

}  // namespace

void check_pooling(const PoolingSpec& spec) {
  if (spec.spatial == 0)
    fail(KILN_STATUS_NOT_INITIALIZED,
         "poolingDesc was created but never set; expected window, padding and stride");
  if (spec.spatial < 1 || spec.spatial > 3)
    fail(KILN_STATUS_BAD_PARAM, "arrayLength is ", spec.spatial, "; expected 1, 2 or 3");
  check_enumerator("mode", spec.mode);
  check_enumerator("nanPropagation", spec.nan);
  for (int i = 0; i < spec.spatial; ++i) {
    check_field("window", i, spec.window[i], 1);
    check_field("stride", i, spec.stride[i], 1);
    check_field("dilation", i, spec.dilation[i], 1);
    check_field("padBefore", i, spec.pad_before[i], -most_of_field);
    check_field("padAfter", i, spec.pad_after[i], -most_of_field);
    check_field("overhang", i, spec.overhang[i], 0);
  }
}

TensorDims pooling_output_dims(const PoolingSpec& spec, const Tensor& x, const char* x_name) {
  check_pooling(spec);
  check_given(x, x_name);
  check_space(x, x_name, spec.spatial, "poolingDesc");
  TensorDims dims{x.dims[0], x.dims[1]};
  for (int i = 0; i < spec.spatial; ++i) {
    dims[i + 2] = outputs(spec, i, x.dims[i + 2]);
    if (dims[i + 2] < 1)
      fail(KILN_STATUS_BAD_PARAM, "window[", i, "] is ", spec.window[i], " with dilation ",
           spec.dilation[i], "; expected one that fits into ", x_name, "'s dims[", i + 2, "] ",
           x.dims[i + 2], " with padding ", spec.pad_before[i], " and ", spec.pad_after[i]);
  }
  return dims;
}

PoolingProblem make_pooling_forward(const PoolingSpec& spec, const Tensor& x, const Tensor& y) {
  PoolingProblem problem = make(spec, x, "xDesc", y, "yDesc");
  check_writable(y, "yDesc");
  problem.x_strides = strides_of(x);
  problem.y_strides = strides_of(y);
  return problem;
}

PoolingProblem make_pooling_backward(const PoolingSpec& spec, const Tensor& dy, const Tensor* x,
                                     const Tensor& dx) {
  PoolingProblem problem = make(spec, dx, "dxDesc", dy, "dyDesc");
  check_writable(dx, "dxDesc");
  problem.backward = true;
  problem.y_strides = strides_of(dy);
  problem.dx_strides = strides_of(dx);
  if (spec.mode != KILN_POOLING_MAX) return problem;
  if (x == nullptr)
    fail(KILN_STATUS_BAD_PARAM, "xDesc is null; expected the pooled tensor, for the gradient of a ",
         "maximum goes where the maximum was");
  check_given(*x, "xDesc");
  check_same_type(*x, "xDesc", dx, "dxDesc");
  check_same_sizes(*x, "xDesc", dx, "dxDesc");
  problem.x_strides = strides_of(*x);
  return problem;
}

std::vector<Operand> operands_of(const PoolingProblem& p) {
  const Dims in{p.batch, p.channels, p.in[0], p.in[1], p.in[2]};
  const Dims out{p.batch, p.channels, p.out[0], p.out[1], p.out[2]};
  if (!p.backward) return {{"x", p.type, in, p.x_strides}, {"y", p.type, out, p.y_strides, true}};
  std::vector<Operand> operands{{"dy", p.type, out, p.y_strides}};
  if (p.mode == KILN_POOLING_MAX) operands.push_back({"x", p.type, in, p.x_strides});
  operands.push_back({"dx", p.type, in, p.dx_strides, true});
  return operands;
}

std::string to_line(const PoolingProblem& problem) {
  ConvolutionLine line;
  line.rank = problem.rank;
  line.batch = problem.batch;
  line.in_channels = line.out_channels = problem.channels;
  line.in = problem.in;
  line.filter = problem.window;
  line.out = problem.out;
  line.pad_before = problem.pad;
  line.stride = problem.stride;
  line.dilation = problem.dilation;
  std::string overhang;
  if (problem.overhang != Spatial{}) {
    const auto shown = std::span(problem.overhang).last(static_cast<std::size_t>(problem.rank));
    overhang = cat("--overhang ", join(shown, ":"), " ");
  }
  return cat(problem.backward ? "--dir bwd " : "",
             problem.mode == KILN_POOLING_MAX ? "" : cat("--mode ", name_of(problem.mode), " "),
             problem.nan == KILN_NOT_PROPAGATE_NAN ? "--nan ignore " : "", overhang,
             print_operand_flags(operands_of(problem), problem.rank), print_pooling_line(line));
}

}  // namespace kiln
