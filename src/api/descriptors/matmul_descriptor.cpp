// Descriptors of matrix products.
#include "api/api.hpp"

using kiln::api::checked;
using kiln::api::create;
using kiln::api::destroy;
using kiln::api::guarded;

kilnStatus_t kilnCreateMatmulDescriptor(kilnMatmulDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyMatmulDescriptor(kilnMatmulDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetMatmulDescriptor(kilnMatmulDescriptor_t descriptor, kilnMathMode_t mathMode,
                                     int64_t alignment) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    kiln::check_math(mathMode);
    kiln::check_alignment(alignment);
    target.spec = {mathMode, alignment};
  });
}

kilnStatus_t kilnGetMatmulDescriptor(kilnMatmulDescriptor_t descriptor, kilnMathMode_t* mathMode,
                                     int64_t* alignment) {
  return guarded([&] {
    const auto& source = checked(descriptor, "descriptor");
    if (mathMode != nullptr) *mathMode = source.spec.math;
    if (alignment != nullptr) *alignment = source.spec.alignment;
  });
}
