// Arguments of kiln.hpp's executions: operands and scalars.
#ifndef KILN_OPERANDS_HPP
#define KILN_OPERANDS_HPP

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kiln/descriptors.hpp"

namespace kiln {
inline namespace cxx {

// An operand of an execution, a device address (on the host device, ordinary memory): a pointer,
// or a span, which is checked against the descriptor in size and, of float and double, in type.
// Elements of a span may be float, double, bytes, or anything of two bytes for f16 and bf16.
template <class Void>
class BasicOperand {
 public:
  BasicOperand() noexcept = default;  // none
  BasicOperand(std::nullptr_t) noexcept {}
  BasicOperand(Void* address) noexcept : address_(address) {}
  template <class T, std::size_t count>
  requires std::is_convertible_v<T*, Void*> BasicOperand(std::span<T, count> span)
  noexcept : address_(span.data()), bytes_(span.size_bytes()), element_(sizeof(T)) {
    using Element = std::remove_cv_t<T>;
    static_assert(std::is_same_v<Element, float> || std::is_same_v<Element, double> ||
                      (sizeof(Element) <= 2 && std::is_trivially_copyable_v<Element>),
                  "expected a span of float, double, bytes, or elements of two bytes");
  }

  // The address for a tensor of `extent`; `name` is the operand's in what is thrown. A null
  // descriptor has no elements; the library checks its operand.
  Void* at(const char* name, const Extent& extent) const {
    const std::size_t size = extent.type == KILN_DATA_DOUBLE  ? 8
                             : extent.type == KILN_DATA_FLOAT ? 4
                                                              : 2;
    if (extent.elements == 0 || element_ == 0) return address_;
    if (element_ != 1 && element_ != size)
      throw Exception(
          KILN_STATUS_BAD_PARAM,
          (std::string(name) + " is a span of elements of " + std::to_string(element_) +
           " bytes; expected " + std::to_string(size) + ", those of the descriptor's data type")
              .c_str());
    if (bytes_ / size < extent.elements)
      throw Exception(KILN_STATUS_BAD_PARAM,
                      (std::string(name) + " is a span of " + std::to_string(bytes_ / size) +
                       " elements; expected at least " + std::to_string(extent.elements) +
                       ", which the descriptor spans")
                          .c_str());
    return address_;
  }

 private:
  Void* address_ = nullptr;
  std::size_t bytes_ = 0, element_ = 0;  // of a span
};
using In = BasicOperand<const void>;
using Out = BasicOperand<void>;

// A number that scales or sets. The compiler refuses pointers and NULL.
class Scalar {
 public:
  constexpr Scalar(double value) noexcept : value_(value) {}
  constexpr Scalar(float value) noexcept : value_(value) {}
  constexpr Scalar(int value) noexcept : value_(value) {}
  template <class Other>
  Scalar(Other) = delete;
  constexpr double value() const noexcept { return value_; }

 private:
  double value_;
};

// The result is multiplied by alpha, and beta times the output's old content added.
struct Scale {
  Scalar alpha = 1, beta = 0;
};

namespace detail {
// A scalar as the C functions take it: the address of a host value of the compute type.
class HostScalar {
 public:
  HostScalar(Scalar scalar, kilnDataType_t compute_type) noexcept
      : double_(scalar.value()),
        float_(static_cast<float>(scalar.value())),
        is_double_(compute_type == KILN_DATA_DOUBLE) {}
  operator const void*() const noexcept {
    return is_double_ ? static_cast<const void*>(&double_) : &float_;
  }

 private:
  double double_;
  float float_;
  bool is_double_;
};

struct HostScale {
  HostScalar alpha, beta;
  HostScale(const Scale& scale, kilnDataType_t compute_type) noexcept
      : alpha(scale.alpha, compute_type), beta(scale.beta, compute_type) {}
};

// Of a descriptor that may be null.
template <class Descriptor>
Extent extent(const Descriptor* descriptor) {
  return descriptor != nullptr ? descriptor->extent() : Extent{};
}

// The addresses of an epilogue's tensors, as the C functions take them.
inline std::vector<const void*> addresses_of(const std::vector<In>& operands,
                                             const std::vector<Extent>& extents) {
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "epilogue[" + std::to_string(i) + "]";
    addresses.push_back(operands[i].at(name.c_str(), i < extents.size() ? extents[i] : Extent{}));
  }
  return addresses;
}
}  // namespace detail

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_OPERANDS_HPP
