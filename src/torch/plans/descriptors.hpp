// Descriptors of libkiln that a plan is made from, and its scalars.
#pragma once

#include <stdexcept>
#include <string>

#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

[[noreturn]] inline void fail_with_last_message(const char* what) {
  throw std::runtime_error(std::string("kiln: ") + what + ": " + kilnGetLastErrorMessage());
}

inline void must(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a descriptor was refused");
}

// A descriptor that is destroyed at the end of the scope.
template <class T, kilnStatus_t (*Create)(T*), kilnStatus_t (*Destroy)(T)>
class Descriptor {
 public:
  Descriptor() { must(Create(&handle_)); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Destroy(handle_); }
  operator T() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  T handle_ = nullptr;
};
using TensorDescriptor =
    Descriptor<kilnTensorDescriptor_t, kilnCreateTensorDescriptor, kilnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<kilnFilterDescriptor_t, kilnCreateFilterDescriptor, kilnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<kilnConvolutionDescriptor_t, kilnCreateConvolutionDescriptor,
               kilnDestroyConvolutionDescriptor>;
using ActivationDescriptor = Descriptor<kilnActivationDescriptor_t, kilnCreateActivationDescriptor,
                                        kilnDestroyActivationDescriptor>;
using MatmulDescriptor =
    Descriptor<kilnMatmulDescriptor_t, kilnCreateMatmulDescriptor, kilnDestroyMatmulDescriptor>;
using PoolingDescriptor =
    Descriptor<kilnPoolingDescriptor_t, kilnCreatePoolingDescriptor, kilnDestroyPoolingDescriptor>;
using EpilogueDescriptor = Descriptor<kilnEpilogueDescriptor_t, kilnCreateEpilogueDescriptor,
                                      kilnDestroyEpilogueDescriptor>;
using NormalizationDescriptor =
    Descriptor<kilnNormalizationDescriptor_t, kilnCreateNormalizationDescriptor,
               kilnDestroyNormalizationDescriptor>;

inline void set_tensor(kilnTensorDescriptor_t descriptor, const PlanRequest& r,
                       const PlanRequest::Side& side) {
  must(kilnSetTensorNdDescriptor(descriptor, static_cast<kilnDataType_t>(r.type), r.rank,
                                 side.sizes.data(), side.strides.data()));
}

// The values 1 and 0 in the type of alpha and beta.
struct Scalars {
  const void *one, *zero;
};
inline Scalars scalars_of(const PlanRequest& r) {
  static const double one = 1, zero = 0;
  static const float one_f = 1, zero_f = 0;
  return r.type == KILN_DATA_DOUBLE ? Scalars{&one, &zero} : Scalars{&one_f, &zero_f};
}

}  // namespace kiln::torch
