#include "torch/plans/epilogue_list.hpp"

#include "torch/plans/descriptors.hpp"

namespace kiln::torch {

void set_bias(kilnTensorDescriptor_t bias, const PlanRequest& r, std::size_t along) {
  PlanRequest::Side side{};
  side.sizes.fill(1);
  side.strides.fill(1);
  side.sizes[along] = r.c.sizes[along];
  side.strides[along] = r.bias_stride;
  set_tensor(bias, r, side);
}

void set_list(kilnEpilogueDescriptor_t epilogue, const PlanRequest& r,
              kilnTensorDescriptor_t bias) {
  if (r.has_bias != 0) must(kilnAddEpilogueBias(epilogue, bias));
  if (r.has_residual != 0) {
    TensorDescriptor residual;
    set_tensor(residual, r, {r.c.sizes, r.residual_strides});
    must(kilnAddEpilogueResidual(epilogue, residual));
  }
  if (r.activation != KILN_ACTIVATION_IDENTITY) {
    ActivationDescriptor activation;
    must(kilnSetActivationDescriptor(activation, static_cast<kilnActivationMode_t>(r.activation),
                                     r.activation_coefficient()));
    must(kilnAddEpilogueActivation(epilogue, activation));
  }
  if (r.has_moments != 0) must(kilnAddEpilogueMoments(epilogue));
}

ListOperands::ListOperands(const PlanRequest& r, const Operands& o) {
  const auto add = [&](const void* operand) { all[static_cast<std::size_t>(count++)] = operand; };
  if (r.has_bias != 0) add(o.bias);
  if (r.has_residual != 0) add(o.residual);
  if (r.has_moments != 0) add(o.moments);
}

}  // namespace kiln::torch
