#include "engines/rewrite/layout.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/stride_refusal.hpp"

namespace kiln {
namespace {

constexpr std::int64_t unit_bytes = 16;

std::int64_t size_in_bytes(DataType type) { return static_cast<std::int64_t>(size_of(type)); }
Spatial space_of(const Dims& dims) { return {dims[2], dims[3], dims[4]}; }

bool is_filter(const Operand& operand) {
  return operand.name == std::string_view("w") || operand.name == std::string_view("dw");
}

// Whether the channels are contiguous. A filter of one channel has the same order of taps in either
// layout.
bool in_rows(const Operand& operand) {
  return operand.strides[1] == 1 || (operand.dims[1] == 1 && is_filter(operand));
}

RelayoutTensor::Role role_of(const Operand& operand) {
  using Role = RelayoutTensor::Role;
  const std::string_view name = operand.name;
  if (operand.written) return Role::result;
  if (name == "z") return Role::residual;
  return name == "w" || name == "bias" ? Role::constant : Role::source;
}

Refusal rows_refusal(const Operand& operand) {
  std::int64_t next = operand.dims[1];
  for (const int i : {4, 3, 2, 0}) {
    if (operand.dims[i] > 1 && operand.strides[i] != next)
      return cat(stride_refusal(operand.name, i, operand.strides[i], next),
                 ", as channels-last layout without gaps has it");
    next *= operand.dims[i];
  }
  return {};
}

Refusal planes_refusal(const Operand& operand) {
  std::int64_t next = 1;
  for (const int i : {4, 3, 2}) {
    if (operand.dims[i] == 1) continue;
    if (operand.strides[i] != next)
      return cat(stride_refusal(operand.name, i, operand.strides[i], next),
                 ", as channels-first layout without gaps has it");
    next *= operand.dims[i];
  }
  if (next > limit32 / 4)
    return cat(operand.name, " has ", next, " pixels; expected at most ", limit32 / 4);
  return {};
}

}  // namespace

std::int64_t padded_channels(const ConvolutionProblem& problem, std::int64_t channels) {
  const std::int64_t vector = unit_bytes / size_in_bytes(problem.type());
  if (problem.groups > 1 || channels < vector) return channels;
  return round_up(channels, vector);
}

RelayoutTensor relayout_tensor(const ConvolutionProblem& problem,
                               const std::vector<Operand>& operands, std::string_view name) {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [&](const Operand& each) { return each.name == name; });
  const Operand& operand = *found;
  RelayoutTensor tensor;
  tensor.operand = static_cast<std::uint8_t>(found - operands.begin());
  tensor.type = operand.type;
  tensor.role = role_of(operand);
  tensor.order = in_rows(operand) ? RelayoutTensor::Order::rows : RelayoutTensor::Order::planes;
  tensor.images = tensor.copied_images = operand.dims[0];
  tensor.channels = operand.dims[1];
  tensor.copied_channels = padded_channels(problem, tensor.channels);
  if (is_filter(operand)) tensor.copied_images = padded_channels(problem, tensor.images);
  tensor.image_stride = operand.strides[0];
  tensor.channel_stride = operand.strides[1];
  tensor.row_strides = {operand.strides[2], operand.strides[3], operand.strides[4]};
  tensor.span = operand.span();
  tensor.plane = tensor.copied = space_of(operand.dims);
  return tensor;
}

Refusal copy_refusal(const Operand& operand, const RelayoutTensor& tensor) {
  return is_planar(tensor) ? planes_refusal(operand) : rows_refusal(operand);
}

Refusal apart_refusal(const Operand& operand) {
  if (operand.strides[0] * size_in_bytes(operand.type) % unit_bytes == 0) return {};
  return cat("in ", operand.name, " an image begins ", operand.strides[0],
             " elements after the one before; expected a multiple of ", unit_bytes, " bytes");
}

}  // namespace kiln
