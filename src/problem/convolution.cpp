#include "problem/convolution.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "problem/tensor/checks.hpp"

namespace kiln {

namespace {

void check_output_channels(const ConvolutionSpec& spec, const Tensor& w,
                           const ConvolutionNames& names) {
  if (w.dims[0] % spec.groups != 0) {
    fail(KILN_STATUS_BAD_PARAM, names.w, " has ", w.dims[0], " output channels (dims[",
         names.filter, "]); expected a multiple of groupCount ", spec.groups);
  }
}

// Checks x, w and the convolution against each other.
void check_inputs(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                  const ConvolutionNames& names) {
  check_convolution(spec);
  check_given(x, names.x);
  check_given(w, names.w, Role::filter);
  check_space(x, names.x, spec.spatial, "convDesc");
  check_space(w, names.w, spec.spatial, "convDesc");
  if (spec.compute_type != compute_type(x.type)) {
    fail(KILN_STATUS_BAD_PARAM, "computeType is ", name_of(spec.compute_type), "; expected ",
         name_of(compute_type(x.type)), " for tensors of ", name_of(x.type));
  }
  if (x.dims[1] % spec.groups != 0) {
    fail(KILN_STATUS_BAD_PARAM, names.x, " has ", x.dims[1],
         " channels (dims[1]); expected a multiple of groupCount ", spec.groups);
  }
  if (w.dims[1] != x.dims[1] / spec.groups) {
    fail(KILN_STATUS_BAD_PARAM, names.w, " has ", w.dims[1], " input channels (dims[",
         names.filter + 1, "]); expected ", x.dims[1] / spec.groups, ", the ", x.dims[1],
         " channels of ", names.x, " over groupCount ", spec.groups);
  }
  check_output_channels(spec, w, names);
}

// The sizes of y: {N, K, space...}. The tensors' types are not checked.
TensorDims output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                       const ConvolutionNames& names) {
  check_inputs(spec, x, w, names);
  TensorDims dims{x.dims[0], w.dims[0]};
  for (int i = 0; i < spec.spatial; ++i) {
    const std::int64_t in = x.dims[i + 2], filter = w.dims[i + 2];
    dims[i + 2] = output_size(in, spec.pad_before[i], spec.pad_after[i], filter, spec.stride[i],
                              spec.dilation[i]);
    if (dims[i + 2] < 1) {
      fail(KILN_STATUS_BAD_PARAM, names.w, ": dims[", names.filter + i + 2, "] is ", filter,
           " with dilation[", i, "] ", spec.dilation[i], "; expected a filter that fits into the ",
           in + spec.pad_before[i] + spec.pad_after[i], " elements that ", names.x, "'s dims[",
           i + 2, "] ", in, " has with padding ", spec.pad_before[i], " before and ",
           spec.pad_after[i], " after");
    }
  }
  return dims;
}

// Checks types: both inputs have one type, and the result has the same or, for 16-bit inputs, f32.
void check_types(ConvolutionPass pass, const Tensor& x, const Tensor& w, const Tensor& y,
                 const ConvolutionNames& names) {
  struct Named {
    const Tensor& tensor;
    const char* name;
  };
  const Named all[] = {{x, names.x}, {w, names.w}, {y, names.y}};
  constexpr int read[][2] = {{0, 1}, {1, 2}, {0, 2}}, written[] = {2, 0, 1};
  const int index = static_cast<int>(pass);
  const Named &first = all[read[index][0]], &second = all[read[index][1]];
  const Named& result = all[written[index]];
  check_same_type(second.tensor, second.name, first.tensor, first.name);
  if (size_of(first.tensor.type) != 2)
    return check_same_type(result.tensor, result.name, first.tensor, first.name);
  if (result.tensor.type != first.tensor.type && result.tensor.type != KILN_DATA_FLOAT) {
    fail(KILN_STATUS_BAD_PARAM, result.name, " has data type ", name_of(result.tensor.type),
         "; expected ", name_of(first.tensor.type), ", as ", first.name, " has, or f32");
  }
}

// Adds a checked epilogue. y: the result, which the caller calls yDesc.
void add_epilogue(ConvolutionProblem& problem, const EpilogueList& list, const Tensor& y) {
  problem.epilogue = make_epilogue(list);
  if (const Tensor* const z = tensor_of(list, EpilogueOperation::Kind::residual)) {
    check_given(*z, "zDesc");
    check_same_type(*z, "zDesc", y, "yDesc");
    check_same_sizes(*z, "zDesc", y, "yDesc");
    problem.z_strides = make_operand("z", *z).strides;
  }
  if (const Tensor* const bias = tensor_of(list, EpilogueOperation::Kind::bias)) {
    check_given(*bias, "biasDesc");
    check_one_a_channel(*bias, "biasDesc", y, "yDesc");
    problem.bias_stride = make_operand("bias", *bias).strides[1];
  }
  for (const EpilogueOperation& operation : list) {
    if (operation.kind != EpilogueOperation::Kind::gradient) continue;
    const auto strides_of = [&](const std::optional<Tensor>& tensor, const char* name) {
      if (!tensor) return Dims{};
      check_given(*tensor, name);
      check_same_type(*tensor, name, y, "yDesc");
      check_same_sizes(*tensor, name, y, "yDesc");
      return make_operand("", *tensor).strides;
    };
    problem.norm_x_strides = strides_of(operation.tensor, "normXDesc");
    problem.norm_residual_strides = strides_of(operation.residual, "normResidualDesc");
  }
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
  for (int i = 0; i < spec.spatial; ++i) {
    check_field("padBefore", i, spec.pad_before[i], -most_of_field);
    check_field("padAfter", i, spec.pad_after[i], -most_of_field);
    check_field("stride", i, spec.stride[i], 1);
    check_field("dilation", i, spec.dilation[i], 1);
  }
  check_enumerator("mode", spec.mode);
  check_enumerator("computeType", spec.compute_type);
  if (spec.compute_type != compute_type(spec.compute_type)) {
    fail(KILN_STATUS_BAD_PARAM, "computeType is ", identifier_of(spec.compute_type),
         "; expected KILN_DATA_DOUBLE for f64 tensors, KILN_DATA_FLOAT for all others");
  }
  if (spec.groups < 1) {
    fail(KILN_STATUS_BAD_PARAM, "groupCount is ", spec.groups, "; expected at least 1");
  }
}

void check_math(kilnMathMode_t math) { check_enumerator("mathMode", math); }

void check_alignment(std::int64_t alignment) {
  constexpr std::int64_t most = 4096;
  if (alignment < 1 || alignment > most || (alignment & (alignment - 1)) != 0) {
    fail(KILN_STATUS_BAD_PARAM, "alignment is ", alignment, "; expected a power of two from 1 to ",
         most);
  }
}

TensorDims forward_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                               const ConvolutionNames& names) {
  const TensorDims dims = output_dims(spec, x, w, names);
  check_same_type(w, names.w, x, names.x);
  return dims;
}

TensorDims transposed_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                  const std::int64_t* extra) {
  check_convolution(spec);
  check_given(x, "xDesc");
  check_given(w, "wDesc", Role::filter);
  check_space(x, "xDesc", spec.spatial, "convDesc");
  check_space(w, "wDesc", spec.spatial, "convDesc");
  check_same_type(w, "wDesc", x, "xDesc");
  check_output_channels(spec, w, transposed_names);
  if (x.dims[1] != w.dims[0]) {
    fail(KILN_STATUS_BAD_PARAM, "xDesc has ", x.dims[1], " channels (dims[1]); expected ",
         w.dims[0], ", the first size of wDesc");
  }
  TensorDims dims{x.dims[0], w.dims[1] * spec.groups};
  for (int i = 0; i < spec.spatial; ++i) {
    const std::int64_t more = extra == nullptr ? 0 : extra[i];
    const std::int64_t below = std::max(spec.stride[i], spec.dilation[i]);
    if (more < 0 || more >= below) {
      fail(KILN_STATUS_BAD_PARAM, "outputPadding[", i, "] is ", more, "; expected 0 to ", below - 1,
           ", below the stride or the dilation");
    }
    std::int64_t extent, steps, size;
    if (__builtin_mul_overflow(w.dims[i + 2] - 1, spec.dilation[i], &extent) ||
        __builtin_mul_overflow(x.dims[i + 2] - 1, spec.stride[i], &steps) ||
        __builtin_add_overflow(extent, steps, &size) ||
        __builtin_add_overflow(size, more + 1 - spec.pad_before[i] - spec.pad_after[i], &size) ||
        size < 1) {
      fail(KILN_STATUS_BAD_PARAM, "xDesc: dims[", i + 2, "] is ", x.dims[i + 2], "; with stride ",
           spec.stride[i], ", dilation ", spec.dilation[i], " and padding ", spec.pad_before[i],
           " and ", spec.pad_after[i], " nothing would be left of the output (or more than 2^63)");
    }
    dims[i + 2] = size;
  }
  return dims;
}

ConvolutionProblem make_pass(ConvolutionPass pass, const ConvolutionSpec& spec, const Tensor& x,
                             const Tensor& w, const Tensor& y, const ConvolutionNames& names) {
  const TensorDims out = output_dims(spec, x, w, names);
  check_given(y, names.y);
  check_types(pass, x, w, y, names);
  if (y.rank != x.rank || !std::equal(out.begin(), out.begin() + x.rank, y.dims.begin())) {
    fail(KILN_STATUS_BAD_PARAM, names.y, " has sizes ", sizes_text(y), "; the convolution ",
         pass == ConvolutionPass::dgrad ? cat("of ", names.x, " ") : "", "gives ",
         join(std::span(out).first(x.rank), "x"));
  }
  switch (pass) {
    case ConvolutionPass::fprop: check_writable(y, names.y); break;
    case ConvolutionPass::dgrad: check_writable(x, names.x); break;
    case ConvolutionPass::wgrad: check_writable(w, names.w); break;
  }

  ConvolutionProblem problem;
  problem.pass = pass;
  problem.x_type = x.type;
  problem.w_type = w.type;
  problem.y_type = y.type;
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
  const bool as_default = spec.math == KILN_MATH_TF32 && problem.type() != KILN_DATA_FLOAT;
  problem.math = as_default ? KILN_MATH_DEFAULT : spec.math;
  problem.alignment = std::min(spec.alignment, problem.alignment);
  problem.x_strides = make_operand("x", x).strides;
  problem.w_strides = make_operand("w", w).strides;
  problem.y_strides = make_operand("y", y).strides;
  return problem;
}

ConvolutionProblem make_convolution(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                    const Tensor& y, const EpilogueList& epilogue) {
  ConvolutionProblem problem = make_pass(ConvolutionPass::fprop, spec, x, w, y, {});
  add_epilogue(problem, epilogue, y);
  return problem;
}

ConvolutionProblem make_convolution_dgrad(const ConvolutionSpec& spec, const Tensor& w,
                                          const Tensor& dy, const Tensor& dx,
                                          const ConvolutionNames& names) {
  return make_pass(ConvolutionPass::dgrad, spec, dx, w, dy, names);
}

ConvolutionProblem make_convolution_transposed(const ConvolutionSpec& spec, const Tensor& x,
                                               const Tensor& w, const Tensor& y,
                                               const EpilogueList& epilogue) {
  ConvolutionSpec reading = spec;
  const int rank = spec.spatial + 2;
  const bool alike = x.rank == rank && w.rank == rank && y.rank == rank;
  // An output padding may be whole strides if it is below the dilation: the convolution of y does
  // not read these elements.
  for (int i = 0; i < spec.spatial && alike; ++i) {
    const std::int64_t out = output_size(y.dims[i + 2], spec.pad_before[i], spec.pad_after[i],
                                         w.dims[i + 2], spec.stride[i], spec.dilation[i]);
    if (out <= x.dims[i + 2]) continue;
    const std::int64_t room = y.dims[i + 2] + spec.pad_before[i] + spec.pad_after[i] -
                              ((w.dims[i + 2] - 1) * spec.dilation[i] + 1);
    if (room - (x.dims[i + 2] - 1) * spec.stride[i] < spec.dilation[i])
      reading.pad_after[i] -= (out - x.dims[i + 2]) * spec.stride[i];
  }
  ConvolutionProblem problem = make_convolution_dgrad(reading, w, x, y, transposed_names);
  add_epilogue(problem, epilogue, y);
  return problem;
}

ConvolutionProblem make_convolution_wgrad(const ConvolutionSpec& spec, const Tensor& x,
                                          const Tensor& dy, const Tensor& dw) {
  return make_pass(ConvolutionPass::wgrad, spec, x, dw, dy, wgrad_names);
}

}  // namespace kiln
