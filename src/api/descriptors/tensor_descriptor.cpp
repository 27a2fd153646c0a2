// Tensor descriptors. A setter that fails leaves its descriptor as it was.
#include "api/api.hpp"

using kiln::Role;
using kiln::api::checked;
using kiln::api::create;
using kiln::api::destroy;
using kiln::api::guarded;
using kiln::api::read_dense;
using kiln::api::read_strided;
using kiln::api::write_tensor;

kilnStatus_t kilnCreateTensorDescriptor(kilnTensorDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyTensorDescriptor(kilnTensorDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetTensorNdDescriptor(kilnTensorDescriptor_t descriptor, kilnDataType_t dataType,
                                       int nbDims, const int64_t dims[], const int64_t strides[]) {
  return guarded([&] {
    checked(descriptor, "descriptor").tensor =
        read_strided(Role::tensor, dataType, nbDims, dims, strides);
  });
}

kilnStatus_t kilnSetTensorNdDescriptorEx(kilnTensorDescriptor_t descriptor,
                                         kilnTensorFormat_t format, kilnDataType_t dataType,
                                         int nbDims, const int64_t dims[]) {
  return guarded([&] {
    checked(descriptor, "descriptor").tensor =
        read_dense(Role::tensor, dataType, nbDims, dims, format);
  });
}

kilnStatus_t kilnSetTensor4dDescriptor(kilnTensorDescriptor_t descriptor, kilnTensorFormat_t format,
                                       kilnDataType_t dataType, int64_t n, int64_t c, int64_t h,
                                       int64_t w) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    const int64_t dims[] = {n, c, h, w};
    constexpr const char* names[] = {"n", "c", "h", "w"};
    target.tensor = read_dense(Role::tensor, dataType, 4, dims, format, names);
  });
}

kilnStatus_t kilnGetTensorNdDescriptor(kilnTensorDescriptor_t descriptor, int nbDimsRequested,
                                       kilnDataType_t* dataType, int* nbDims, int64_t dims[],
                                       int64_t strides[]) {
  return guarded([&] {
    write_tensor(checked(descriptor, "descriptor").tensor, nbDimsRequested, dataType, nbDims, dims,
                 strides);
  });
}
