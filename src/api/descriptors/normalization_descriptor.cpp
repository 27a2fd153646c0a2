// Normalization descriptors.
#include "api/activation.hpp"
#include "api/normalization.hpp"

using kiln::api::checked;
using kiln::api::guarded;

kilnStatus_t kilnCreateNormalizationDescriptor(kilnNormalizationDescriptor_t* descriptor) {
  return kiln::api::create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor) {
  return kiln::api::destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor, int affine,
                                            int running, int frozen, double epsilon) {
  return guarded([&] {
    kiln::NormalizationSpec& target = checked(descriptor, "descriptor").spec;
    kiln::NormalizationSpec spec = target;
    spec.affine = affine != 0;
    spec.running = running != 0;
    spec.frozen = frozen != 0;
    spec.epsilon = epsilon;
    kiln::check_normalization(spec);
    target = spec;
  });
}

kilnStatus_t kilnSetNormalizationActivation(kilnNormalizationDescriptor_t descriptor,
                                            kilnActivationDescriptor_t activationDesc) {
  return guarded([&] {
    kiln::NormalizationSpec& spec = checked(descriptor, "descriptor").spec;
    spec.activation =
        activationDesc == nullptr ? kiln::Activation{} : kiln::api::activation_of(activationDesc);
  });
}

kilnStatus_t kilnGetNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor, int* affine,
                                            int* running, int* frozen, double* epsilon) {
  return guarded([&] {
    const kiln::NormalizationSpec& spec = checked(descriptor, "descriptor").spec;
    if (affine != nullptr) *affine = spec.affine;
    if (running != nullptr) *running = spec.running;
    if (frozen != nullptr) *frozen = spec.frozen;
    if (epsilon != nullptr) *epsilon = spec.epsilon;
  });
}

kilnStatus_t kilnSetNormalizationStatistics(kilnNormalizationDescriptor_t descriptor,
                                            kilnNormalizationStatistics_t statistics,
                                            int64_t groups, int centered) {
  return guarded([&] {
    kiln::NormalizationSpec& target = checked(descriptor, "descriptor").spec;
    kiln::NormalizationSpec spec = target;
    spec.statistics = statistics;
    spec.groups = groups;
    spec.centered = centered != 0;
    kiln::check_normalization(spec);
    target = spec;
  });
}

kilnStatus_t kilnGetNormalizationStatistics(kilnNormalizationDescriptor_t descriptor,
                                            kilnNormalizationStatistics_t* statistics,
                                            int64_t* groups, int* centered) {
  return guarded([&] {
    const kiln::NormalizationSpec& spec = checked(descriptor, "descriptor").spec;
    if (statistics != nullptr) *statistics = spec.statistics;
    if (groups != nullptr) *groups = spec.groups;
    if (centered != nullptr) *centered = spec.centered;
  });
}

kilnStatus_t kilnSetNormalizationBias(kilnNormalizationDescriptor_t descriptor, int bias) {
  return guarded([&] { checked(descriptor, "descriptor").spec.bias = bias != 0; });
}

kilnStatus_t kilnGetNormalizationBias(kilnNormalizationDescriptor_t descriptor, int* bias) {
  return guarded([&] {
    const kiln::NormalizationSpec& spec = checked(descriptor, "descriptor").spec;
    if (bias != nullptr) *bias = spec.bias;
  });
}
