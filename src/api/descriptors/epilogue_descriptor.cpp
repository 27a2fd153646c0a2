// Epilogue descriptors: lists of operations, which a plan's problem checks.
#include "api/activation.hpp"
#include "api/epilogue.hpp"
#include "api/normalization.hpp"

using kiln::api::checked;
using kiln::api::guarded;
using Kind = kiln::EpilogueOperation::Kind;

namespace {

void add(kilnEpilogueDescriptor_t descriptor, kiln::EpilogueOperation operation) {
  kiln::EpilogueList& list = checked(descriptor, "descriptor").list;
  if (list.size() == kiln::most_epilogue_operations) {
    kiln::fail(KILN_STATUS_BAD_PARAM, "descriptor has ", list.size(),
               " operations already; expected at most ", kiln::most_epilogue_operations);
  }
  list.push_back(std::move(operation));
}

const kiln::Tensor& given(kilnTensorDescriptor_t descriptor, const char* name) {
  const kiln::Tensor& tensor = checked(descriptor, name).tensor;
  kiln::check_given(tensor, name);
  return tensor;
}

}  // namespace

kilnStatus_t kilnCreateEpilogueDescriptor(kilnEpilogueDescriptor_t* descriptor) {
  return kiln::api::create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyEpilogueDescriptor(kilnEpilogueDescriptor_t descriptor) {
  return kiln::api::destroy(descriptor, "descriptor");
}

kilnStatus_t kilnAddEpilogueBias(kilnEpilogueDescriptor_t descriptor,
                                 kilnTensorDescriptor_t biasDesc) {
  return guarded(
      [&] { add(descriptor, {.kind = Kind::bias, .tensor = given(biasDesc, "biasDesc")}); });
}

kilnStatus_t kilnAddEpilogueResidual(kilnEpilogueDescriptor_t descriptor,
                                     kilnTensorDescriptor_t zDesc) {
  return guarded([&] {
    kiln::EpilogueOperation operation{.kind = Kind::residual};
    if (zDesc != nullptr) operation.tensor = given(zDesc, "zDesc");
    add(descriptor, std::move(operation));
  });
}

kilnStatus_t kilnAddEpilogueActivation(kilnEpilogueDescriptor_t descriptor,
                                       kilnActivationDescriptor_t activationDesc) {
  return guarded([&] {
    add(descriptor,
        {.kind = Kind::activation, .activation = kiln::api::activation_of(activationDesc)});
  });
}

kilnStatus_t kilnAddEpilogueMoments(kilnEpilogueDescriptor_t descriptor) {
  return guarded([&] { add(descriptor, {.kind = Kind::moments}); });
}

kilnStatus_t kilnAddEpilogueNormalizationGradient(kilnEpilogueDescriptor_t descriptor,
                                                  kilnNormalizationDescriptor_t normDesc,
                                                  kilnTensorDescriptor_t normXDesc,
                                                  kilnTensorDescriptor_t normResidualDesc) {
  return guarded([&] {
    const kiln::NormalizationSpec& spec = checked(normDesc, "normDesc").spec;
    if (spec.statistics != KILN_NORMALIZATION_BATCH)
      kiln::fail(KILN_STATUS_BAD_PARAM, "normDesc has statistics of ",
                 kiln::name_of(spec.statistics), "; expected those of the batch");
    if (spec.affine && !spec.bias)
      kiln::fail(KILN_STATUS_BAD_PARAM,
                 "normDesc has a scale without a bias; expected both, or neither");
    kiln::EpilogueOperation operation{.kind = Kind::gradient,
                                      .tensor = given(normXDesc, "normXDesc"),
                                      .activation = spec.activation,
                                      .affine = spec.affine};
    if (normResidualDesc != nullptr)
      operation.residual = given(normResidualDesc, "normResidualDesc");
    add(descriptor, std::move(operation));
  });
}

kilnStatus_t kilnGetEpilogueCounts(kilnEpilogueDescriptor_t descriptor, int* operations,
                                   int* operands) {
  return guarded([&] {
    const kiln::EpilogueList& list = checked(descriptor, "descriptor").list;
    if (operations != nullptr) *operations = static_cast<int>(list.size());
    if (operands != nullptr) {
      *operands = 0;
      for (const kiln::EpilogueOperation& each : list)
        *operands += static_cast<int>(kiln::operands_of(each));
    }
  });
}
