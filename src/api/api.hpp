// What the C entry points share: the opaque objects, and the border where exceptions become
// statuses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "api/checks.hpp"
#include "core/error.hpp"
#include "kiln/kiln.h"
#include "problem/activation.hpp"
#include "problem/convolution.hpp"
#include "problem/matmul.hpp"
#include "problem/pooling.hpp"
#include "problem/tensor/checks.hpp"
#include "problem/tensor/tensor.hpp"

namespace kiln::api {

// Keeps the message of the exception being handled for this thread, behind the name of the C
// function, and gives its status.
kilnStatus_t remember_exception(const char* function) noexcept;

// Every entry point that can fail is guarded([&] { ... }). Success costs nothing. What stands
// between an entry point and this hands the function's name on, by the same default argument.
template <class Body>
kilnStatus_t guarded(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  try {
    std::forward<Body>(body)();
    return KILN_STATUS_SUCCESS;
  } catch (...) {
    return remember_exception(function);
  }
}

// For the setters of two dimensions, whose fields have names of their own.
inline void check_range(const char* name, std::int64_t value, std::int64_t least) {
  if (value < least || value > most_of_field) {
    fail(KILN_STATUS_BAD_PARAM, name, " is ", value, "; expected ", least, " to ", most_of_field);
  }
}

// kilnCreate...Descriptor and kilnDestroy...; destroying null does nothing.
template <class Object>
kilnStatus_t create(Object** object, const char* name,
                    const char* function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&] {
        check_pointer(object, name, "where to store the new object");
        *object = nullptr;
        *object = new Object;
      },
      function);
}

template <class Object>
kilnStatus_t destroy(Object* object, const char* name,
                     const char* function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&] {
        if (object != nullptr) delete &checked(object, name);
      },
      function);
}

// Tensors and filters from and to the caller's arrays. Reading refuses null arrays and a rank out
// of range before it touches them. `names` are what the caller calls the sizes, if not dims[0] and
// so on. Throws BAD_PARAM.
Tensor read_strided(Role role, kilnDataType_t type, int rank, const std::int64_t* dims,
                    const std::int64_t* strides);
Tensor read_dense(Role role, kilnDataType_t type, int rank, const std::int64_t* dims,
                  kilnTensorFormat_t format, std::span<const char* const> names = {});

// Writes to the outputs that are not null. Throws NOT_INITIALIZED if `tensor` was never set.
void write_tensor(const Tensor& tensor, int requested, kilnDataType_t* type, int* rank,
                  std::int64_t* dims, std::int64_t* strides);

}  // namespace kiln::api

struct kilnTensorStruct {
  static constexpr auto kind = "a tensor descriptor", creator = "kilnCreateTensorDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7401;
  kiln::api::Mark mark{mark_value};
  kiln::Tensor tensor;
};

struct kilnFilterStruct {
  static constexpr auto kind = "a filter descriptor", creator = "kilnCreateFilterDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7402;
  kiln::api::Mark mark{mark_value};
  kiln::Tensor tensor;
};

struct kilnConvolutionStruct {
  static constexpr auto kind = "a convolution descriptor",
                        creator = "kilnCreateConvolutionDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7403;
  kiln::api::Mark mark{mark_value};
  kiln::ConvolutionSpec spec;
};

struct kilnPoolingStruct {
  static constexpr auto kind = "a pooling descriptor", creator = "kilnCreatePoolingDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7406;
  kiln::api::Mark mark{mark_value};
  kiln::PoolingSpec spec;
};

struct kilnActivationStruct {
  static constexpr auto kind = "an activation descriptor",
                        creator = "kilnCreateActivationDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7407;
  kiln::api::Mark mark{mark_value};
  bool set = false;
  kiln::Activation activation;
};

struct kilnMatmulStruct {
  static constexpr auto kind = "a matrix product's descriptor",
                        creator = "kilnCreateMatmulDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c740c;
  kiln::api::Mark mark{mark_value};
  kiln::MatmulSpec spec;
};
