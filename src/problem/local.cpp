#include "problem/local.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "problem/tensor/checks.hpp"

namespace kiln {
namespace {

struct Names {
  const char *x, *w, *y;
};

// A tensor of weights, divided into its outer dimensions and the filter of one pixel.
struct Weights {
  Tensor filter;  // one pixel's: {K, C per group, space...}
  OuterDims dims{1, 1, 1, 1}, strides{};
  bool per_image = false;
  int first_pixel = 0;  // index of the output's first size among the tensor's

  Weights(const Tensor& w, int spatial) {
    per_image = w.rank == 2 * spatial + 3;
    first_pixel = per_image ? 1 : 0;
    if (per_image) {
      dims[0] = w.dims[0];
      strides[0] = w.strides[0];
    }
    for (int i = 0; i < spatial; ++i) {
      const int axis = outer_rank - spatial + i;
      dims[axis] = w.dims[first_pixel + i];
      strides[axis] = dims[axis] > 1 ? w.strides[first_pixel + i] : 0;
    }
    const int first = first_filter(spatial);
    filter.type = w.type;
    filter.rank = spatial + 2;
    std::copy_n(w.dims.begin() + first, filter.rank, filter.dims.begin());
    std::copy_n(w.strides.begin() + first, filter.rank, filter.strides.begin());
  }
  int first_filter(int spatial) const { return first_pixel + spatial; }
};

Weights weights_of(const ConvolutionSpec& spec, const Tensor& w, const char* name) {
  check_convolution(spec);
  check_given(w, name);
  const int least = 2 * spec.spatial + 2;
  if (w.rank != least && w.rank != least + 1)
    fail(KILN_STATUS_BAD_PARAM, name, " has ", w.rank, " dimensions; expected ", least,
         ", the output's ", spec.spatial, " of space, K, C a group and the filter's, or ",
         least + 1, " with the batch before them");
  return {w, spec.spatial};
}

// Checks that there are weights for every pixel of y, and for every image or for all together.
void check_places(const Weights& weights, const Tensor& w, const char* name, const Tensor& y,
                  const char* y_name, int spatial) {
  if (weights.per_image && w.dims[0] != y.dims[0] && w.dims[0] != 1)
    fail(KILN_STATUS_BAD_PARAM, name, ": dims[0] is ", w.dims[0], "; expected ", y.dims[0],
         ", the images of ", y_name, ", or 1 for weights that they share");
  for (int i = 0; i < spatial; ++i) {
    const int axis = weights.first_pixel + i;
    if (w.dims[axis] != y.dims[i + 2])
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[", axis, "] is ", w.dims[axis], "; expected ",
           y.dims[i + 2], ", as dims[", i + 2, "] of ", y_name);
  }
}

LocalProblem make(ConvolutionPass pass, const ConvolutionSpec& spec, const Tensor& x,
                  const Tensor& w, const Tensor& y, const Names& names) {
  const Weights weights = weights_of(spec, w, names.w);
  if (pass == ConvolutionPass::wgrad) check_writable(w, names.w);
  LocalProblem problem;
  problem.conv = make_pass(pass, spec, x, weights.filter, y,
                           {names.x, names.w, names.y, weights.first_filter(spec.spatial)});
  problem.conv.math = KILN_MATH_DEFAULT;  // every mode multiplies and adds in the compute type
  check_places(weights, w, names.w, y, names.y, spec.spatial);
  problem.outer_strides = weights.strides;
  if (weights.dims[0] != problem.conv.batch) problem.outer_strides[0] = 0;
  return problem;
}

void add_bias(LocalProblem& problem, const Tensor& bias, const Tensor& y) {
  check_given(bias, "biasDesc");
  check_same_type(bias, "biasDesc", y, "yDesc");
  check_broadcasts(bias, "biasDesc", y, "yDesc");
  if (bias.dims[0] != 1)
    fail(KILN_STATUS_BAD_PARAM, "biasDesc: dims[0] is ", bias.dims[0],
         "; expected 1, for all images share it");
  problem.bias = true;
  const Operand operand = make_operand("bias", bias);
  problem.bias_dims = operand.dims;
  problem.bias_strides = operand.strides;
  problem.bias_strides[0] = 0;
}

Operand weights_operand(const LocalProblem& p, const char* name) {
  Operand w{name, p.conv.w_type, p.conv.w_dims(), p.conv.w_strides};
  w.outer_dims = {p.per_image() ? p.conv.batch : 1, p.conv.out[0], p.conv.out[1], p.conv.out[2]};
  w.outer_strides = p.outer_strides;
  return w;
}

// A tensor of the problem's own rank from five sizes.
Tensor tensor_of(const LocalProblem& p, const Dims& dims) {
  Tensor tensor;
  tensor.rank = p.conv.rank + 2;
  for (int i = 0; i < tensor.rank; ++i)
    tensor.dims[i] = dims[i < 2 ? i : i + operand_rank - tensor.rank];
  return tensor;
}

// The weights that would be dense in this order (see local_weights()).
Weights dense(const LocalProblem& p, const std::string& order) {
  const Tensor w = local_weights(tensor_of(p, p.conv.w_dims()), tensor_of(p, p.conv.y_dims()),
                                 order, "the order");
  return {w, p.conv.rank};
}

bool lies_so(const LocalProblem& p, const std::string& order) {
  const Weights weights = dense(p, order);
  return weights.strides == p.outer_strides &&
         make_operand("w", weights.filter).strides == p.conv.w_strides;
}

std::string weights_flags(const LocalProblem& p, kilnTensorFormat_t layout) {
  const std::string usual =
      cat(p.per_image() ? "n" : "", layout == KILN_TENSOR_NHWC ? "pktc" : "pkct");
  if (lies_so(p, usual)) return p.per_image() ? cat("--weights ", usual, " ") : "";
  std::string order = p.per_image() ? "cknpt" : "ckpt";
  do {
    if (lies_so(p, order)) return cat("--weights ", order, " ");
  } while (std::next_permutation(order.begin(), order.end()));
  std::string flags = p.per_image() ? cat("--weights ", usual, " ") : "";
  flags += "--w-strides ";
  if (p.per_image()) flags += cat(p.outer_strides[0], ":");
  for (int i = outer_rank - p.conv.rank; i < outer_rank; ++i) flags += cat(p.outer_strides[i], ":");
  flags += cat(p.conv.w_strides[0], ":", p.conv.w_strides[1]);
  for (int i = operand_rank - p.conv.rank; i < operand_rank; ++i)
    flags += cat(":", p.conv.w_strides[i]);
  return flags + " ";
}

std::string bias_flags(const LocalProblem& p) {
  if (!p.bias) return "";
  const Tensor shape = tensor_of(p, p.bias_dims);
  Dims element = p.conv.y_dims(), channel{1, p.conv.out_channels, 1, 1, 1};
  element[0] = 1;
  std::string flags = cat("--bias ",
                          p.bias_dims == element   ? "element"
                          : p.bias_dims == channel ? "channel"
                                                   : sizes_text(shape),
                          " ");
  Dims dense = dense_operand_strides(KILN_TENSOR_NCHW, p.bias_dims);
  dense[0] = 0;
  if (p.bias_strides == dense) return flags;
  const Tensor strides = tensor_of(p, p.bias_strides);
  return flags +
         cat("--bias-strides ",
             join(std::span(strides.dims).first(static_cast<std::size_t>(strides.rank)), ":"), " ");
}

}  // namespace

LocalProblem make_local(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                        const Tensor* bias, const Tensor& y) {
  LocalProblem problem = make(ConvolutionPass::fprop, spec, x, w, y, {"xDesc", "wDesc", "yDesc"});
  if (bias != nullptr) add_bias(problem, *bias, y);
  return problem;
}

LocalProblem make_local_dgrad(const ConvolutionSpec& spec, const Tensor& w, const Tensor& dy,
                              const Tensor& dx) {
  return make(ConvolutionPass::dgrad, spec, dx, w, dy, {"dxDesc", "wDesc", "dyDesc"});
}

LocalProblem make_local_wgrad(const ConvolutionSpec& spec, const Tensor& x, const Tensor& dy,
                              const Tensor& dw) {
  return make(ConvolutionPass::wgrad, spec, x, dw, dy, {"xDesc", "dwDesc", "dyDesc"});
}

Tensor local_weights(const Tensor& filter, const Tensor& y, std::string_view order,
                     const char* option) {
  std::string letters(order);
  std::sort(letters.begin(), letters.end());
  if (letters != "ckpt" && letters != "cknpt")
    fail(KILN_STATUS_BAD_PARAM, option, " is ", order,
         "; expected p, k, c and t in any order, and n where each image has weights of its own");
  const int spatial = filter.rank - 2;
  const bool per_image = letters == "cknpt";
  Tensor w;
  w.type = filter.type;
  w.rank = 2 * spatial + (per_image ? 3 : 2);
  if (w.rank > KILN_DIM_MAX)
    fail(KILN_STATUS_NOT_SUPPORTED, option, " is ", order, " with ", spatial,
         " dimensions of space; a tensor has at most ", KILN_DIM_MAX,
         " dimensions, so each image may have weights of its own in 1 and 2");
  const int pixels = per_image ? 1 : 0, k = pixels + spatial;
  if (per_image) w.dims[0] = y.dims[0];
  std::copy_n(y.dims.begin() + 2, spatial, w.dims.begin() + pixels);
  std::copy_n(filter.dims.begin(), filter.rank, w.dims.begin() + k);
  check_tensor(w, "w", true);  // so that the strides below do not overflow
  std::int64_t stride = 1;
  for (std::size_t letter = order.size(); letter-- > 0;) {
    int first = 0, count = 1;
    switch (order[letter]) {
      case 'p': first = pixels, count = spatial; break;
      case 'k': first = k; break;
      case 'c': first = k + 1; break;
      case 't': first = k + 2, count = spatial; break;
      default: break;
    }
    for (int i = first + count; i-- > first;) {
      w.strides[i] = stride;
      stride *= std::max<std::int64_t>(w.dims[i], 1);
    }
  }
  return w;
}

std::vector<Operand> operands_of(const LocalProblem& p) {
  std::vector<Operand> operands = operands_of(p.conv);
  for (Operand& operand : operands)
    if (std::string_view(operand.name).ends_with('w')) {
      const bool written = operand.written;
      operand = weights_operand(p, operand.name);
      operand.written = written;
    }
  if (p.bias)
    operands.insert(operands.end() - 1,
                    {"bias", p.conv.result_type(), p.bias_dims, p.bias_strides});
  return operands;
}

std::string to_line(const LocalProblem& problem) {
  ConvolutionProblem conv = problem.conv;
  const auto matches = [&](kilnTensorFormat_t layout) {
    return (dense_operand_strides(layout, conv.x_dims()) == conv.x_strides) +
           (dense_operand_strides(layout, conv.y_dims()) == conv.y_strides);
  };
  const kilnTensorFormat_t layout =
      matches(KILN_TENSOR_NHWC) > matches(KILN_TENSOR_NCHW) ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
  conv.w_strides =
      dense_operand_strides(layout, conv.w_dims());  // so that the line has no --w-strides
  return weights_flags(problem, layout) + bias_flags(problem) + to_line(conv);
}

}  // namespace kiln
