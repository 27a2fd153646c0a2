// The gradient.
#include "cudnn/descriptors/types.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/normalization/checked_call.hpp"

namespace kiln::cudnn {
namespace {

// Numbers that are kept from one step to the next, in rows of one for each channel or activation:
// mean and inverse deviation; then the moments of x, 3 rows as they are measured and 3 as they are
// combined, and later in their place the gradients of scale and bias.
constexpr std::size_t rows_of_gradient = 8;

// What the gradient of the normalization takes for dy. Where the forward pass has added z, which is
// not given here, that is dz, the activation's own gradient, which comes first.
const TensorArgument& inner_dy(const NormalizationCall& call) {
  return call.kind.adds ? call.dz : call.dy;
}

// Whether the activation's gradient is a part of the normalization's.
bool activates_within(const NormalizationCall& call) {
  return call.kind.activates && !call.kind.adds;
}

void check_activation(const NormalizationCall& call) {
  if (call.kind.adds && set_before(call.activation).fields.mode == CUDNN_ACTIVATION_SWISH)
    fail(KILN_STATUS_NOT_SUPPORTED,
         "activationDesc is SWISH, whose gradient is not a function of y; expected another mode "
         "behind an addition");
}

struct BackwardTensors {
  kilnTensorDescriptor_t x, dy, dx;
};

GrantedPlan gradient_plan(const CheckedCall& checked, const NormalizationCall& call,
                          const BackwardTensors& tensors) {
  const std::string key = checked.key('b', false, {&call.x, &inner_dy(call), &call.dx});
  return granted_plan(key, [&](kilnPlan_t* plan) {
    const KilnNormalization norm = checked.normalization(false, activates_within(call));
    return kilnCreateNormalizationBackwardPlan(checked.handle(), norm.get(), tensors.x, nullptr,
                                               tensors.dy, nullptr, tensors.dx, plan);
  });
}

// dz = dy * act'
void differentiate_activation(CheckedCall& checked, const NormalizationCall& call,
                              kilnTensorDescriptor_t dz) {
  auto* const y = checked.tensor_with_data(call.y);
  auto* const dy = checked.tensor_with_data(call.dy);
  static constexpr double zero = 0;  // its bytes are also a float's 0
  must(kilnActivationBackward(checked.handle(), kiln_of(call.activation), one_of(checked.type()), y,
                              call.y.data, dy, call.dy.data, nullptr, nullptr, &zero, dz,
                              writable(call.dz.data)));
}

// Mean and inverse deviation of x, into the first two rows.
void take_statistics(const CheckedCall& checked, const NormalizationCall& call,
                     kilnTensorDescriptor_t x, std::byte* rows) {
  const std::size_t row = checked.row_bytes();
  std::byte *const measured = rows + 2 * row, *const combined = rows + 5 * row;
  must(kilnNormalizationMoments(checked.handle(), x, call.x.data, measured));
  const KilnNormalization norm = checked.normalization(false, false);
  must(kilnCombineNormalizationMoments(
      checked.handle(), norm.get(), kiln_type(checked.type(), call.x.desc_name), 1,
      checked.numbers(), measured, nullptr, nullptr, nullptr, rows, rows + row, combined));
}

// The numbers of a step of the gradient, whichever memory they are in.
struct Numbers {
  const void *bias, *mean, *deviation;
  void *dscale, *dbias;
};

void differentiate(const CheckedCall& checked, const NormalizationCall& call,
                   const BackwardTensors& tensors, const Numbers& numbers) {
  const void* const dy = inner_dy(call).data;
  if (call.workspace.has_value()) {
    const GrantedPlan granted = gradient_plan(checked, call, tensors);
    if (checked.has_workspace_for(granted)) {
      const LentWorkspace lent = checked.lend();
      must(kilnExecuteNormalizationBackward(
          checked.handle(), granted.plan, call.blend.alpha, call.x.data, call.scale.data,
          numbers.bias, numbers.mean, numbers.deviation, nullptr, dy, numbers.dscale, numbers.dbias,
          nullptr, call.blend.beta, writable(call.dx.data)));
      return;
    }
  }
  const KilnNormalization norm = checked.normalization(false, activates_within(call));
  must(kilnNormalizationBackward(checked.handle(), norm.get(), call.blend.alpha, tensors.x,
                                 call.x.data, call.scale.data, numbers.bias, numbers.mean,
                                 numbers.deviation, nullptr, nullptr, tensors.dy, dy,
                                 numbers.dscale, numbers.dbias, nullptr, nullptr, call.blend.beta,
                                 tensors.dx, writable(call.dx.data)));
}

}  // namespace

void differentiate_normalization(const NormalizationCall& call) {
  CheckedCall checked(call);
  check_activation(call);
  const BackwardTensors tensors{checked.tensor_with_data(call.x),
                                checked.tensor_with_data(inner_dy(call)),
                                checked.tensor_with_data(call.dx)};
  checked.check_blend(call.blend);
  for (const NumbersArgument* each : {&call.scale, &call.dscale, &call.dbias}) check_numbers(*each);
  if (activates_within(call)) check_numbers(call.bias);
  const bool saved = both(call.mean, call.spread);
  const BlendArgument& blend = call.parameters_blend;
  const double alpha = scalar(blend.alpha, checked.type(), blend.alpha_name);
  const double beta = scalar(blend.beta, checked.type(), blend.beta_name);
  const bool blends = alpha != 1 || beta != 0;

  std::byte* const rows = saved && !blends ? nullptr : checked.take_rows(rows_of_gradient);
  const auto row = [&](std::size_t number) { return rows + number * checked.row_bytes(); };
  if (call.kind.adds) differentiate_activation(checked, call, tensors.dy);
  if (!saved) take_statistics(checked, call, tensors.x, rows);
  const Numbers numbers{
      // Without an activation nothing reads the bias, and cuDNN's callers may have none.
      .bias = activates_within(call) ? call.bias.data : call.scale.data,
      .mean = saved ? call.mean.data : row(0),
      .deviation = saved ? call.spread.data : row(1),
      .dscale = blends ? row(2) : writable(call.dscale.data),
      .dbias = blends ? row(3) : writable(call.dbias.data)};
  differentiate(checked, call, tensors, numbers);
  if (!blends) return;
  auto* const shape = kiln_of(call.parameters[0].desc, call.parameters[0].name);
  must(kilnAddTensor(checked.handle(), blend.alpha, shape, numbers.dscale, blend.beta, shape,
                     writable(call.dscale.data)));
  must(kilnAddTensor(checked.handle(), blend.alpha, shape, numbers.dbias, blend.beta, shape,
                     writable(call.dbias.data)));
}

std::size_t gradient_workspace(const NormalizationCall& call) {
  CheckedCall checked(call);
  check_activation(call);
  const BackwardTensors tensors{checked.tensor(call.x), checked.tensor(inner_dy(call)),
                                checked.tensor(call.dx)};
  return checked.workspace(rows_of_gradient, gradient_plan(checked, call, tensors));
}

}  // namespace kiln::cudnn
