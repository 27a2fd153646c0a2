#include "cudnn/descriptors/give.hpp"
#include "cudnn/descriptors/layers.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::ActivationFields;
using kiln::cudnn::give;
using kiln::cudnn::guarded;

namespace kiln::cudnn {
namespace {

kilnActivationMode_t kiln_activation(cudnnActivationMode_t mode) {
  switch (mode) {
    case CUDNN_ACTIVATION_SIGMOID: return KILN_ACTIVATION_SIGMOID;
    case CUDNN_ACTIVATION_RELU: return KILN_ACTIVATION_RELU;
    case CUDNN_ACTIVATION_TANH: return KILN_ACTIVATION_TANH;
    case CUDNN_ACTIVATION_CLIPPED_RELU: return KILN_ACTIVATION_CLIPPED_RELU;
    case CUDNN_ACTIVATION_ELU: return KILN_ACTIVATION_ELU;
    case CUDNN_ACTIVATION_IDENTITY: return KILN_ACTIVATION_IDENTITY;
    case CUDNN_ACTIVATION_SWISH: return KILN_ACTIVATION_SILU;
  }
  fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode),
       "; expected a cudnnActivationMode_t, 0 to 6");
}

}  // namespace

const cudnnActivationStruct& set_before(cudnnActivationDescriptor_t descriptor) {
  const cudnnActivationStruct& object = checked(descriptor, "activationDesc");
  if (object.fields.is_set == 0)
    fail(KILN_STATUS_BAD_PARAM, "activationDesc was never set; expected a mode");
  return object;
}

kilnActivationDescriptor_t kiln_of(cudnnActivationDescriptor_t descriptor) {
  const cudnnActivationStruct& object = set_before(descriptor);
  const ActivationFields& f = object.fields;
  if (f.mode == CUDNN_ACTIVATION_SWISH && f.swish_beta != 1)
    fail(KILN_STATUS_NOT_SUPPORTED, "activationDesc's swish_beta is ", f.swish_beta,
         "; expected 1");
  return object.kiln.get();
}

}  // namespace kiln::cudnn

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activationDesc) {
  return guarded([&] {
    check_pointer(activationDesc, "activationDesc", "where to store the new descriptor");
    *activationDesc = nullptr;
    *activationDesc = new cudnnActivationStruct;
  });
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activationDesc) {
  return guarded([&] { kiln::cudnn::destroy(activationDesc, "activationDesc"); });
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t reluNanOpt, double coef) {
  return guarded([&] {
    cudnnActivationStruct& object = checked(activationDesc, "activationDesc");
    const kilnActivationMode_t kiln_mode = kiln::cudnn::kiln_activation(mode);
    kiln::cudnn::kiln_nan(reluNanOpt, "reluNanOpt");
    kiln::cudnn::must(kilnSetActivationDescriptor(object.kiln.get(), kiln_mode, coef));
    object.fields.mode = mode;
    object.fields.nan = reluNanOpt;
    object.fields.coef = coef;
    object.fields.is_set = 1;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                           cudnnActivationMode_t* mode,
                                           cudnnNanPropagation_t* reluNanOpt, double* coef) {
  return guarded([&] {
    const ActivationFields& f = kiln::cudnn::set_before(activationDesc).fields;
    give(f.mode, mode);
    give(f.nan, reluNanOpt);
    give(f.coef, coef);
  });
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                    double swish_beta) {
  return guarded([&] {
    cudnnActivationStruct& object = checked(activationDesc, "activationDesc");
    object.fields.swish_beta = swish_beta;
    object.fields.has_swish_beta = 1;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                    double* swish_beta) {
  return guarded(
      [&] { give(checked(activationDesc, "activationDesc").fields.swish_beta, swish_beta); });
}
