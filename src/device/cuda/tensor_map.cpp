#include "device/cuda/tensor_map.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "core/error.hpp"
#include "device/cuda/driver.hpp"
#include "problem/types.hpp"

namespace kiln::cuda {
namespace {

CUtensorMapDataType type_of(kilnDataType_t type) {
  switch (type) {
    case KILN_DATA_HALF: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case KILN_DATA_BFLOAT16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case KILN_DATA_DOUBLE: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

CUtensorMapSwizzle swizzle_of(const TensorMapSpec& spec) {
  if (!spec.swizzled) return CU_TENSOR_MAP_SWIZZLE_NONE;
  switch (spec.box[0] * static_cast<std::int64_t>(size_of(spec.type))) {
    case 32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64: return CU_TENSOR_MAP_SWIZZLE_64B;
    default: return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

}  // namespace

void encode(const TensorMapSpec& spec, std::span<std::byte, tensor_map_bytes> to) {
  const Driver& functions = driver();
  if (functions.cuTensorMapEncodeTiled == nullptr || functions.cuTensorMapEncodeIm2col == nullptr ||
      functions.cuTensorMapReplaceAddress == nullptr)
    fail(KILN_STATUS_NOT_SUPPORTED,
         "the CUDA driver is too old for tensor maps; expected one of CUDA 12.0 or later");
  static_assert(sizeof(CUtensorMap) == tensor_map_bytes);
  std::array<cuuint64_t, 5> sizes{};
  std::array<cuuint64_t, 4> strides{};
  std::array<cuuint32_t, 5> box{}, steps{1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 5; ++i) {
    sizes[i] = static_cast<cuuint64_t>(spec.sizes[i]);
    box[i] = static_cast<cuuint32_t>(spec.box[i]);
    if (i < 4) strides[i] = static_cast<cuuint64_t>(spec.strides[i]);
  }
  const CUtensorMapSwizzle swizzle = swizzle_of(spec);
  // The driver requires an address, but the operand's is not known yet.
  constexpr std::uintptr_t some_address = 0x10000;
  void* const address = reinterpret_cast<void*>(some_address);  // NOLINT(performance-no-int-to-ptr)
  const auto rank = static_cast<cuuint32_t>(spec.rank);
  CUtensorMap map;
  if (spec.mode == TensorMapSpec::Mode::tiled) {
    check(functions.cuTensorMapEncodeTiled(
              &map, type_of(spec.type), rank, address, sizes.data(), strides.data(), box.data(),
              steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
              CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeTiled");
  } else {
    // Corners are innermost first, although cuda.h's comments say otherwise.
    std::array<int, 3> lower{}, upper{};
    for (std::size_t i = 0; i < 3; ++i) {
      lower[i] = static_cast<int>(spec.lower[i]);
      upper[i] = static_cast<int>(spec.upper[i]);
      steps[1 + i] = static_cast<cuuint32_t>(spec.steps[i]);
    }
    check(functions.cuTensorMapEncodeIm2col(
              &map, type_of(spec.type), rank, address, sizes.data(), strides.data(), lower.data(),
              upper.data(), box[0], box[1], steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
              CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeIm2col");
  }
  std::memcpy(to.data(), &map, sizeof map);
}

void set_address(std::byte* map, void* address) {
  check(driver().cuTensorMapReplaceAddress(reinterpret_cast<CUtensorMap*>(map), address),
        "cuTensorMapReplaceAddress");
}

}  // namespace kiln::cuda
