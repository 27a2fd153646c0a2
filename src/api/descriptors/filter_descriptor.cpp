// Filter descriptors. A setter that fails leaves its descriptor as it was.
#include "api/api.hpp"

using kiln::Role;
using kiln::api::checked;
using kiln::api::create;
using kiln::api::destroy;
using kiln::api::guarded;
using kiln::api::read_dense;
using kiln::api::read_strided;
using kiln::api::write_tensor;

kilnStatus_t kilnCreateFilterDescriptor(kilnFilterDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyFilterDescriptor(kilnFilterDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetFilterNdDescriptor(kilnFilterDescriptor_t descriptor, kilnDataType_t dataType,
                                       kilnTensorFormat_t format, int nbDims,
                                       const int64_t dims[]) {
  return guarded([&] {
    checked(descriptor, "descriptor").tensor =
        read_dense(Role::filter, dataType, nbDims, dims, format);
  });
}

kilnStatus_t kilnSetFilterNdDescriptorStrided(kilnFilterDescriptor_t descriptor,
                                              kilnDataType_t dataType, int nbDims,
                                              const int64_t dims[], const int64_t strides[]) {
  return guarded([&] {
    checked(descriptor, "descriptor").tensor =
        read_strided(Role::filter, dataType, nbDims, dims, strides);
  });
}

kilnStatus_t kilnSetFilter4dDescriptor(kilnFilterDescriptor_t descriptor, kilnDataType_t dataType,
                                       kilnTensorFormat_t format, int64_t k, int64_t c, int64_t h,
                                       int64_t w) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    const int64_t dims[] = {k, c, h, w};
    constexpr const char* names[] = {"k", "c", "h", "w"};
    target.tensor = read_dense(Role::filter, dataType, 4, dims, format, names);
  });
}

kilnStatus_t kilnGetFilterNdDescriptor(kilnFilterDescriptor_t descriptor, int nbDimsRequested,
                                       kilnDataType_t* dataType, int* nbDims, int64_t dims[],
                                       int64_t strides[]) {
  return guarded([&] {
    write_tensor(checked(descriptor, "descriptor").tensor, nbDimsRequested, dataType, nbDims, dims,
                 strides);
  });
}
