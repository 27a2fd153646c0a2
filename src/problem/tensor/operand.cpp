#include "problem/tensor/operand.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/text.hpp"

namespace kiln {
namespace {

void clear_idle_strides(const Dims& dims, Dims& strides) {
  for (int i = 1; i < operand_rank; ++i)
    if (dims[i] < 2) strides[i] = 0;
}

}  // namespace

std::int64_t Operand::count() const {
  std::int64_t count = 1;
  for (int i = 0; i < axes; ++i) count *= size(i);
  return count;
}

std::int64_t Operand::span() const {
  std::int64_t last = 0;
  for (int i = 0; i < axes; ++i) {
    if (size(i) == 0) return 0;
    last += (size(i) - 1) * stride(i);
  }
  return last + 1;
}

std::int64_t Operand::offset(std::int64_t index) const {
  std::int64_t offset = 0;
  for (int i = axes; i-- > first_axis(); index /= size(i)) offset += index % size(i) * stride(i);
  return offset;
}

std::string Operand::coordinates(std::int64_t index) const {
  std::array<std::int64_t, axes> at{};
  for (int i = axes; i-- > first_axis(); index /= size(i)) at[i] = index % size(i);
  return join(std::span(at).subspan(first_axis()), ",");
}

bool Operand::contiguous() const {
  std::array<std::pair<std::int64_t, std::int64_t>, axes> steps;  // stride, size
  for (int i = 0; i < axes; ++i) steps[i] = {size(i) > 1 ? stride(i) : 0, size(i)};
  std::sort(steps.begin(), steps.end());
  std::int64_t next = 1;
  for (const auto& [step, count] : steps) {
    if (step == 0) continue;
    if (step != next) return false;
    next *= count;
  }
  return true;
}

bool Operand::same_places(const Operand& other) const {
  if (type != other.type || dims != other.dims || outer_dims != other.outer_dims) return false;
  for (int i = first_axis(); i < axes; ++i)
    if (size(i) > 1 && stride(i) != other.stride(i)) return false;
  return true;
}

std::vector<bool> Operand::members() const {
  std::vector<bool> members;
  if (span() <= count()) return members;
  members.resize(static_cast<std::size_t>(span()));
  const std::int64_t total = count();
  for (std::int64_t i = 0; i < total; ++i) members[static_cast<std::size_t>(offset(i))] = true;
  return members;
}

Operand make_operand(const char* name, const Tensor& tensor, bool written) {
  Operand operand{name, tensor.type, {1, 1, 1, 1, 1}, {}, written};
  const int missing = std::max(operand_rank - tensor.rank, 0);
  for (int i = 0; i < tensor.rank; ++i) {
    const int axis = i < 2 ? i : i + missing;
    operand.dims[axis] = tensor.dims[i];
    operand.strides[axis] = tensor.strides[i];
  }
  clear_idle_strides(operand.dims, operand.strides);
  return operand;
}

Dims dense_operand_strides(kilnTensorFormat_t format, const Dims& dims) {
  TensorDims sizes{};
  std::copy(dims.begin(), dims.end(), sizes.begin());
  const TensorDims dense = dense_strides(format, operand_rank, sizes);
  Dims strides;
  std::copy_n(dense.begin(), operand_rank, strides.begin());
  clear_idle_strides(dims, strides);
  return strides;
}

}  // namespace kiln
