#include "problem/tensor/tensor.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"

namespace kiln {

namespace {

// One dimension of more than one element.
struct Axis {
  std::int64_t size, stride;
};

// Looks for two different elements with one address: for a vector v, not all zero, with |v[i]| <
// size[i] and sum of v[i] * stride[i] == 0. Axes are tried from the largest stride down. For an
// axis, only those v are tried that the axes below it can still bring back to zero; for nested
// strides that is only v == 0.
class CollisionSearch {
 public:
  // Strides above 0.
  explicit CollisionSearch(std::span<const Axis> axes) : count_(axes.size()) {
    std::copy(axes.begin(), axes.end(), axes_.begin());
    std::sort(axes_.begin(), axes_.begin() + count_,
              [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    for (std::size_t i = count_; i-- > 0;) {
      reach_[i] = reach_[i + 1] + (axes_[i].size - 1) * axes_[i].stride;
    }
  }

  bool found() { return from(0, 0, false); }

 private:
  bool from(std::size_t index, std::int64_t offset, bool nonzero) {
    if (index == count_) return offset == 0 && nonzero;
    if (--budget_ < 0) return true;
    const auto [size, stride] = axes_[index];
    const std::int64_t below = reach_[index + 1];
    const std::int64_t low = std::max(1 - size, -floor_divide(below + offset, stride));
    const std::int64_t high = std::min(size - 1, floor_divide(below - offset, stride));
    for (std::int64_t v = low; v <= high; ++v) {
      if (from(index + 1, offset + v * stride, nonzero || v != 0)) return true;
    }
    return false;
  }

  static std::int64_t floor_divide(std::int64_t a, std::int64_t positive) {
    return a >= 0 ? a / positive : -((positive - 1 - a) / positive);
  }

  std::size_t count_;
  std::array<Axis, KILN_DIM_MAX> axes_;
  std::array<std::int64_t, KILN_DIM_MAX + 1> reach_{};  // the last offset by axes i and below alone
  int budget_ = 100'000;  // steps, about a millisecond; running out of it counts as a collision
};

}  // namespace

void check_tensor(const Tensor& tensor, const char* name, bool first_may_be_zero) {
  if (size_of(tensor.type) == 0)  // texts for messages are made only for errors
    refuse_enumerator(enumeration_of(tensor.type), cat(name, ": dataType"), tensor.type);
  if (tensor.rank < 1 || tensor.rank > KILN_DIM_MAX) {
    fail(KILN_STATUS_BAD_PARAM, name, ": nbDims is ", tensor.rank, "; expected 1 to ",
         KILN_DIM_MAX);
  }
  // In bytes. The product of the sizes is bounded as well as the last offset, which does not depend
  // on broadcast dimensions.
  const std::int64_t element = static_cast<std::int64_t>(size_of(tensor.type));
  std::int64_t product = element, span = element;
  for (int i = 0; i < tensor.rank; ++i) {
    const std::int64_t size = tensor.dims[i], least = i == 0 && first_may_be_zero ? 0 : 1;
    if (size < least) {
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[", i, "] is ", size, "; expected at least ", least);
    }
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product)) {
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[", i, "] is ", size,
           "; expected sizes whose product in bytes is below 2^63");
    }
  }
  for (int i = 0; i < tensor.rank; ++i) {
    const std::int64_t size = tensor.dims[i], stride = tensor.strides[i];
    if (stride < 0) {
      fail(KILN_STATUS_BAD_PARAM, name, ": strides[", i, "] is ", stride,
           "; expected at least 1, or 0 to broadcast");
    }
    std::int64_t last;
    if (__builtin_mul_overflow(std::max<std::int64_t>(size - 1, 0) * element, stride, &last) ||
        __builtin_add_overflow(span, last, &span)) {
      fail(KILN_STATUS_BAD_PARAM, name, ": strides[", i, "] is ", stride, " with dims[", i, "] ",
           size, "; expected strides whose last offset in bytes is below 2^63");
    }
  }
}

TensorDims dense_strides(kilnTensorFormat_t format, int rank, const TensorDims& dims) {
  TensorDims strides{};
  std::int64_t next = 1;
  const auto place = [&](int i) {
    strides[i] = next;
    next *= dims[i];
  };
  if (format == KILN_TENSOR_NHWC && rank > 1) {
    place(1);
    for (int i = rank - 1; i > 1; --i) place(i);
    place(0);
  } else {
    for (int i = rank - 1; i >= 0; --i) place(i);
  }
  return strides;
}

std::int64_t span_elements(const Tensor& tensor) {
  std::int64_t span = 1;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 0) return 0;
    span += (tensor.dims[i] - 1) * tensor.strides[i];
  }
  return span;
}

bool overlaps_itself(const Tensor& tensor) {
  std::array<Axis, KILN_DIM_MAX> axes;
  std::size_t count = 0;
  bool broadcast = false;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 0) return false;
    if (tensor.dims[i] == 1) continue;
    broadcast |= tensor.strides[i] == 0;
    axes[count++] = {tensor.dims[i], tensor.strides[i]};
  }
  return broadcast || CollisionSearch(std::span(axes).first(count)).found();
}

}  // namespace kiln
