#include "problem/convolution.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/error.hpp"
#include "problem/problem_line.hpp"

namespace kiln {

namespace {

std::string sizes_text(const Tensor& tensor) {
  return join(std::span(tensor.dims).first(tensor.rank), "x");
}

void check_int32(const char* field, int index, std::int64_t value, std::int64_t least) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (value < least || value > most) {
    fail(KILN_STATUS_BAD_PARAM, field, "[", index, "] is ", value, "; expected ", least, " to ",
         most);
  }
}

void check_set(const Tensor& tensor, const char* name) {
  if (tensor.rank == 0) {
    fail(KILN_STATUS_NOT_INITIALIZED, name, " was created but never set; expected sizes and type");
  }
}

// What x, w and the convolution say about each other; y is not looked at.
void check_inputs(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w) {
  check_convolution(spec);
  check_set(x, "xDesc");
  check_set(w, "wDesc");
  check_tensor(x, "xDesc", true);
  check_tensor(w, "wDesc", false);
  const int rank = spec.spatial + 2;
  if (x.rank != rank) {
    fail(KILN_STATUS_BAD_PARAM, "xDesc has ", x.rank, " dimensions; expected ", rank,
         ", for convDesc has ", spec.spatial, " of space");
  }
  if (w.rank != rank) {
    fail(KILN_STATUS_BAD_PARAM, "wDesc has ", w.rank, " dimensions; expected ", rank,
         ", as xDesc has");
  }
  if (w.type != x.type) {
    fail(KILN_STATUS_BAD_PARAM, "wDesc has data type ", name_of(w.type), "; expected ",
         name_of(x.type), ", as xDesc has");
  }
  if (spec.compute_type != compute_type(x.type)) {
    fail(KILN_STATUS_BAD_PARAM, "computeType is ", name_of(spec.compute_type), "; expected ",
         name_of(compute_type(x.type)), " for tensors of ", name_of(x.type));
  }
  if (x.dims[1] % spec.groups != 0) {
    fail(KILN_STATUS_BAD_PARAM, "xDesc has ", x.dims[1],
         " channels (dims[1]); expected a multiple of groupCount ", spec.groups);
  }
  if (w.dims[1] != x.dims[1] / spec.groups) {
    fail(KILN_STATUS_BAD_PARAM, "wDesc has ", w.dims[1], " input channels (dims[1]); expected ",
         x.dims[1] / spec.groups, ", the ", x.dims[1], " channels of xDesc over groupCount ",
         spec.groups);
  }
  if (w.dims[0] % spec.groups != 0) {
    fail(KILN_STATUS_BAD_PARAM, "wDesc has ", w.dims[0],
         " output channels (dims[0]); expected a multiple of groupCount ", spec.groups);
  }
}

struct Axes {
  kilnTensorFormat_t layout;
  std::array<std::int64_t, 5> x, w, y;
};

// Strides of dimensions of fewer than two elements are never multiplied by anything but 0. The
// batch's is kept all the same: the kernel of one image is the kernel of many.
std::array<std::int64_t, 5> canonical_strides(const Tensor& tensor) {
  std::array<std::int64_t, 5> strides{};
  const int missing = KILN_DIM_MAX - tensor.rank;
  for (int i = 0; i < tensor.rank; ++i) {
    strides[i < 2 ? i : i + missing] = i == 0 || tensor.dims[i] > 1 ? tensor.strides[i] : 0;
  }
  return strides;
}

// The three tensors of a problem, in canonical strides, were they dense in `format`.
Axes dense_axes(const ConvolutionProblem& problem, kilnTensorFormat_t format) {
  const auto strides = [&](std::int64_t first, std::int64_t second, const Spatial& space) {
    Tensor tensor;
    tensor.rank = KILN_DIM_MAX;
    tensor.dims = {first, second, space[0], space[1], space[2]};
    tensor.strides = dense_strides(format, tensor.rank, tensor.dims);
    return canonical_strides(tensor);
  };
  return {format, strides(problem.batch, problem.in_channels, problem.in),
          strides(problem.out_channels, problem.group_in(), problem.filter),
          strides(problem.batch, problem.out_channels, problem.out)};
}

}  // namespace

double ConvolutionProblem::flops() const {
  double product = 2.0 * static_cast<double>(batch) * static_cast<double>(out_channels) *
                   static_cast<double>(group_in());
  for (int i = 0; i < 3; ++i) {
    product *= static_cast<double>(out[i]) * static_cast<double>(filter[i]);
  }
  return product;
}

std::int64_t output_size(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after,
                         std::int64_t filter, std::int64_t stride, std::int64_t dilation) {
  std::int64_t extent, room;
  const bool overflow = __builtin_mul_overflow(filter - 1, dilation, &extent) ||
                        __builtin_add_overflow(extent, 1, &extent) ||
                        __builtin_sub_overflow(in + pad_before + pad_after, extent, &room);
  return overflow || room < 0 ? 0 : room / stride + 1;
}

void check_convolution(const ConvolutionSpec& spec) {
  if (spec.spatial == 0) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "convDesc was created but never set; expected padding, stride and dilation");
  }
  if (spec.spatial < 1 || spec.spatial > 3) {
    fail(KILN_STATUS_BAD_PARAM, "arrayLength is ", spec.spatial, "; expected 1, 2 or 3");
  }
  constexpr std::int64_t least_pad = -std::numeric_limits<std::int32_t>::max();
  for (int i = 0; i < spec.spatial; ++i) {
    check_int32("padBefore", i, spec.pad_before[i], least_pad);
    check_int32("padAfter", i, spec.pad_after[i], least_pad);
    check_int32("stride", i, spec.stride[i], 1);
    check_int32("dilation", i, spec.dilation[i], 1);
  }
  if (spec.mode != KILN_CONVOLUTION && spec.mode != KILN_CROSS_CORRELATION) {
    fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(spec.mode),
         "; expected 0 (convolution) or 1 (cross-correlation)");
  }
  if (spec.compute_type != KILN_DATA_FLOAT && spec.compute_type != KILN_DATA_DOUBLE) {
    fail(KILN_STATUS_BAD_PARAM, "computeType is ", static_cast<int>(spec.compute_type),
         "; expected 0 (float) or 1 (double, for f64 tensors)");
  }
  if (spec.groups < 1) {
    fail(KILN_STATUS_BAD_PARAM, "groupCount is ", spec.groups, "; expected at least 1");
  }
}

Dims forward_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w) {
  check_inputs(spec, x, w);
  Dims dims{x.dims[0], w.dims[0]};
  for (int i = 0; i < spec.spatial; ++i) {
    const std::int64_t in = x.dims[i + 2], filter = w.dims[i + 2];
    dims[i + 2] = output_size(in, spec.pad_before[i], spec.pad_after[i], filter, spec.stride[i],
                              spec.dilation[i]);
    if (dims[i + 2] < 1) {
      fail(KILN_STATUS_BAD_PARAM, "wDesc: dims[", i + 2, "] is ", filter, " with dilation[", i,
           "] ", spec.dilation[i], "; expected a filter that fits into the ",
           in + spec.pad_before[i] + spec.pad_after[i], " elements that xDesc's dims[", i + 2, "] ",
           in, " has with padding ", spec.pad_before[i], " before and ", spec.pad_after[i],
           " after");
    }
  }
  return dims;
}

ConvolutionProblem make_convolution(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                    const Tensor& y) {
  const Dims out = forward_output_dims(spec, x, w);
  check_set(y, "yDesc");
  check_tensor(y, "yDesc", true);
  if (y.type != x.type) {
    fail(KILN_STATUS_BAD_PARAM, "yDesc has data type ", name_of(y.type), "; expected ",
         name_of(x.type), ", as xDesc has");
  }
  if (y.rank != x.rank || !std::equal(out.begin(), out.begin() + x.rank, y.dims.begin())) {
    fail(KILN_STATUS_BAD_PARAM, "yDesc has sizes ", sizes_text(y), "; the convolution gives ",
         join(std::span(out).first(x.rank), "x"));
  }
  if (overlaps_itself(y)) {
    fail(KILN_STATUS_BAD_PARAM, "yDesc: strides are ",
         join(std::span(y.strides).first(y.rank), ":"), " for sizes ", sizes_text(y),
         "; expected strides by which no two elements of the output share an address");
  }

  ConvolutionProblem problem;
  problem.type = x.type;
  problem.rank = spec.spatial;
  problem.batch = x.dims[0];
  problem.groups = spec.groups;
  problem.in_channels = x.dims[1];
  problem.out_channels = w.dims[0];
  problem.in = problem.filter = problem.out = {1, 1, 1};
  const int missing = 3 - spec.spatial;
  for (int i = 0; i < spec.spatial; ++i) {
    problem.in[i + missing] = x.dims[i + 2];
    problem.filter[i + missing] = w.dims[i + 2];
    problem.out[i + missing] = y.dims[i + 2];
    problem.pad[i + missing] = spec.pad_before[i];
    problem.stride[i + missing] = spec.stride[i];
    problem.dilation[i + missing] = spec.dilation[i];
  }
  problem.mode = spec.mode;
  problem.x_strides = canonical_strides(x);
  problem.w_strides = canonical_strides(w);
  problem.y_strides = canonical_strides(y);
  return problem;
}

std::string to_line(const ConvolutionProblem& problem) {
  const Axes nchw = dense_axes(problem, KILN_TENSOR_NCHW);
  const Axes nhwc = dense_axes(problem, KILN_TENSOR_NHWC);
  const auto matches = [&](const Axes& axes) {
    return (axes.x == problem.x_strides) + (axes.w == problem.w_strides) +
           (axes.y == problem.y_strides);
  };
  const Axes& nearest = matches(nhwc) > matches(nchw) ? nhwc : nchw;

  std::string flags;
  if (problem.type != KILN_DATA_FLOAT) flags += cat("--dt ", name_of(problem.type), " ");
  if (nearest.layout == KILN_TENSOR_NHWC) flags += "--layout nhwc ";
  if (problem.mode == KILN_CONVOLUTION) flags += "--mode conv ";
  const auto add_strides = [&](const char* flag, const std::array<std::int64_t, 5>& strides,
                               const std::array<std::int64_t, 5>& dense) {
    if (strides == dense) return;
    flags += cat(flag, " ", strides[0], ":", strides[1]);
    for (int i = 5 - problem.rank; i < 5; ++i) flags += cat(":", strides[i]);
    flags += " ";
  };
  add_strides("--x-strides", problem.x_strides, nearest.x);
  add_strides("--w-strides", problem.w_strides, nearest.w);
  add_strides("--y-strides", problem.y_strides, nearest.y);

  ConvolutionLine line;
  line.rank = problem.rank;
  line.batch = problem.batch;
  line.groups = problem.groups;
  line.in_channels = problem.in_channels;
  line.out_channels = problem.out_channels;
  line.in = problem.in;
  line.filter = problem.filter;
  line.out = problem.out;
  line.pad_before = problem.pad;
  line.stride = problem.stride;
  line.dilation = problem.dilation;
  for (int i = 0; i < 3; ++i) {
    line.pad_after[i] = (line.out[i] - 1) * line.stride[i] +
                        (line.filter[i] - 1) * line.dilation[i] + 1 - line.in[i] -
                        line.pad_before[i];
  }
  return flags + print_convolution_line(line);
}

}  // namespace kiln
