// The operands of a convolution, and its line.
#include "core/text.hpp"
#include "problem/convolution.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {
namespace {

struct Axes {
  kilnTensorFormat_t layout;
  Dims x, w, y;
};

// The canonical strides that the three tensors of a problem would have if they were dense in
// `format`.
Axes dense_axes(const ConvolutionProblem& problem, kilnTensorFormat_t format) {
  return {format, dense_operand_strides(format, problem.x_dims()),
          dense_operand_strides(format, problem.w_dims()),
          dense_operand_strides(format, problem.y_dims())};
}

// What a normalization's gradient reads and writes beside the result.
void add_gradient_operands(std::vector<Operand>& operands, const ConvolutionProblem& p,
                           const Operand& result) {
  const NormalizationGradient& gradient = *p.epilogue.gradient;
  const std::int64_t channels = result.dims[1];
  const auto of_channels = [&](const char* name, bool written = false) {
    operands.push_back({name,
                        compute_type(result.type),
                        {1, channels, 1, 1, 1},
                        {0, channels > 1 ? 1 : 0},
                        written});
  };
  operands.push_back({"norm_x", result.type, result.dims, p.norm_x_strides});
  if (gradient.affine) {
    of_channels("norm_scale");
    of_channels("norm_bias");
  }
  of_channels("norm_mean");
  of_channels("norm_deviation");
  operands.back().positive = true;
  if (gradient.residual)
    operands.push_back({"norm_residual", result.type, result.dims, p.norm_residual_strides});
  of_channels("norm_dscale", true);
  of_channels("norm_dbias", true);
}

}  // namespace

std::vector<Operand> operands_of(const ConvolutionProblem& p) {
  const Operand x{"x", p.x_type, p.x_dims(), p.x_strides};
  const Operand w{"w", p.w_type, p.w_dims(), p.w_strides};
  const Operand y{"y", p.y_type, p.y_dims(), p.y_strides};
  const auto gradient = [](Operand operand, const char* name) {
    operand.name = name;
    return operand;
  };
  std::vector<Operand> operands;
  switch (p.pass) {
    case ConvolutionPass::fprop: operands = {x, w}; break;
    case ConvolutionPass::dgrad: operands = {w, gradient(y, "dy")}; break;
    case ConvolutionPass::wgrad: operands = {x, gradient(y, "dy")}; break;
  }
  Operand result = p.pass == ConvolutionPass::fprop   ? y
                   : p.pass == ConvolutionPass::dgrad ? gradient(x, "dx")
                                                      : gradient(w, "dw");
  result.written = true;
  if (p.epilogue.residual)
    operands.push_back({"z", result.type, result.dims, p.z_strides, false, true});
  if (p.epilogue.bias)
    operands.push_back({"bias", result.type, {1, result.dims[1], 1, 1, 1}, {0, p.bias_stride}});
  if (p.epilogue.moments) {
    const std::int64_t channels = result.dims[1];
    operands.push_back({"moments",
                        compute_type(result.type),
                        {3, channels, 1, 1, 1},
                        {channels, channels > 1 ? 1 : 0},
                        true});
  }
  if (p.epilogue.gradient) add_gradient_operands(operands, p, result);
  operands.push_back(result);
  return operands;
}

std::string to_line(const ConvolutionProblem& problem) {
  const Axes nchw = dense_axes(problem, KILN_TENSOR_NCHW);
  const Axes nhwc = dense_axes(problem, KILN_TENSOR_NHWC);
  const auto matches = [&](const Axes& axes) {
    return (axes.x == problem.x_strides) + (axes.w == problem.w_strides) +
           (axes.y == problem.y_strides);
  };
  const Axes& nearest = matches(nhwc) > matches(nchw) ? nhwc : nchw;

  constexpr const char* directions[] = {"", "--dir dgrad ", "--dir wgrad "};
  std::string flags = directions[static_cast<int>(problem.pass)];
  if (problem.x_type != problem.w_type || problem.x_type != problem.y_type)
    flags += cat("--dt ", name_of(problem.x_type), ":", name_of(problem.w_type), ":",
                 name_of(problem.y_type), " ");
  else if (problem.type() != KILN_DATA_FLOAT)
    flags += cat("--dt ", name_of(problem.type()), " ");
  if (nearest.layout == KILN_TENSOR_NHWC) flags += "--layout nhwc ";
  if (problem.mode == KILN_CONVOLUTION) flags += "--mode conv ";
  if (problem.math != KILN_MATH_DEFAULT) flags += cat("--math ", name_of(problem.math), " ");
  if (problem.alignment != ConvolutionSpec{}.alignment)
    flags += cat("--align ", problem.alignment, " ");
  const ConvolutionEpilogue& epilogue = problem.epilogue;
  if (epilogue.bias) flags += "--bias ";
  const std::int64_t dense_bias = problem.result_dims()[1] > 1 ? 1 : 0;
  if (epilogue.bias && problem.bias_stride != dense_bias)
    flags += cat("--bias-stride ", problem.bias_stride, " ");
  if (epilogue.residual) flags += "--residual ";
  if (epilogue.residual_last) flags += "--residual-last ";
  if (epilogue.activation.mode != KILN_ACTIVATION_IDENTITY) {
    flags += print_activation(epilogue.activation);
  }
  if (epilogue.moments) flags += "--moments ";
  if (const auto& gradient = epilogue.gradient) {
    flags += "--norm-gradient ";
    if (!gradient->affine) flags += "--no-affine ";
    if (gradient->residual) flags += "--norm-residual ";
    if (gradient->activation.mode != KILN_ACTIVATION_IDENTITY)
      flags += print_activation(gradient->activation);
  }
  const auto add_strides = [&](const char* flag, const Dims& strides, const Dims& dense) {
    if (strides == dense) return;
    flags += cat(flag, " ", strides[0], ":", strides[1]);
    for (int i = 5 - problem.rank; i < 5; ++i) flags += cat(":", strides[i]);
    flags += " ";
  };
  add_strides("--x-strides", problem.x_strides, nearest.x);
  add_strides("--w-strides", problem.w_strides, nearest.w);
  add_strides("--y-strides", problem.y_strides, nearest.y);
  const bool forward = problem.pass == ConvolutionPass::fprop;
  const Dims& of_result = forward ? nearest.y : nearest.x;
  if (epilogue.residual) add_strides("--z-strides", problem.z_strides, of_result);
  if (epilogue.gradient) add_strides("--norm-x-strides", problem.norm_x_strides, of_result);
  if (epilogue.gradient && epilogue.gradient->residual)
    add_strides("--norm-residual-strides", problem.norm_residual_strides, of_result);

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
