// kiln::block and its gradient: a convolution, batch normalization by the statistics of its result,
// an addition and an activation, in one call of PyTorch's dispatcher.
#include <algorithm>
#include <array>

#include "torch/convolution/operators.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

constexpr std::size_t geometry_count = 6;  // stride, padding, dilation, transposed, and so on

}  // namespace

void block(Value* stack, std::uint64_t, std::uint64_t) {
  const Value* const norm = stack + 3 + geometry_count;
  const Tensor weight = take_optional_tensor(norm[0]), bias = take_optional_tensor(norm[1]);
  const Tensor residual = take_optional_tensor(norm[2]);
  const Tensor running_mean = take_optional_tensor(norm[3]);
  const Tensor running_variance = take_optional_tensor(norm[4]);
  const Value factor = norm[5], epsilon = norm[6], activation = norm[7], coefficient = norm[8];

  convolution_moments(stack, 3 + geometry_count, 2);
  Tensor y = take_tensor(stack[0]);
  Value statistics[] = {stack[1], share_optional_tensor(running_mean),
                        share_optional_tensor(running_variance), factor, epsilon};
  combine_moments(statistics, 5, 2);
  Tensor mean = take_tensor(statistics[0]), inverse_deviation = take_tensor(statistics[1]);
  Value apply[] = {share_tensor(y),
                   share_tensor(mean),
                   share_tensor(inverse_deviation),
                   share_optional_tensor(weight),
                   share_optional_tensor(bias),
                   share_optional_tensor(residual),
                   activation,
                   coefficient,
                   1};
  normalize(apply, 9, 1);
  stack[0] = apply[0];
  stack[1] = give_tensor(std::move(y));
  stack[2] = give_tensor(std::move(mean));
  stack[3] = give_tensor(std::move(inverse_deviation));
}

void block_backward(Value* stack, std::uint64_t, std::uint64_t) {
  // grad_output, then what normalize_backward takes after it, but for `own`.
  Value norm[11];
  std::copy_n(stack, 9, norm);
  norm[9] = 1;
  norm[10] = stack[9];
  // input, weight, bias_sizes, the geometry, the mask
  std::array<Value, 3 + geometry_count + 2> conv{};
  std::copy_n(stack + 10, conv.size() - 1, conv.begin() + 1);
  normalize_backward(norm, 11, 4);
  conv[0] = norm[0];
  fused_convolution_backward(conv.data(), conv.size(), 3);
  std::copy_n(conv.begin(), 3, stack);
  std::copy_n(norm + 1, 3, stack + 3);
}

}  // namespace kiln::torch
