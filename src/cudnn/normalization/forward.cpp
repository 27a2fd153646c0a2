// Inference and training.
#include "cudnn/library/status.hpp"
#include "cudnn/normalization/checked_call.hpp"

namespace kiln::cudnn {
namespace {

constexpr std::size_t rows_of_training = 2;  // mean and inverse deviation, where none are saved

// Kiln's descriptors of the tensors.
struct ForwardTensors {
  kilnTensorDescriptor_t x, z, y;
};

ForwardTensors tensors_of(CheckedCall& checked, const NormalizationCall& call) {
  return {checked.tensor(call.x), call.kind.adds ? checked.tensor(call.z) : nullptr,
          checked.tensor(call.y)};
}

ForwardTensors tensors_with_data(CheckedCall& checked, const NormalizationCall& call) {
  return {checked.tensor_with_data(call.x),
          call.kind.adds ? checked.tensor_with_data(call.z) : nullptr,
          checked.tensor_with_data(call.y)};
}

// Kiln says the same of a channel, in its own sizes.
void check_images_of_training(const CheckedCall& checked, const NormalizationCall& call) {
  if (call.kind.per_activation && checked.images() < 2)
    fail(KILN_STATUS_BAD_PARAM, call.x.desc_name, " has ", checked.images(),
         checked.images() == 1 ? " image" : " images",
         "; expected at least 2, from which training estimates each activation's variance");
}

GrantedPlan training_plan(const CheckedCall& checked, const NormalizationCall& call,
                          const ForwardTensors& tensors, bool running) {
  const TensorArgument* const z = call.kind.adds ? &call.z : nullptr;
  return granted_plan(checked.key('t', running, {&call.x, z, &call.y}), [&](kilnPlan_t* plan) {
    const KilnNormalization norm = checked.normalization(running, call.kind.activates);
    return kilnCreateNormalizationForwardTrainingPlan(checked.handle(), norm.get(), tensors.x,
                                                      tensors.z, tensors.y, plan);
  });
}

}  // namespace

void normalize_in_inference(const NormalizationCall& call) {
  CheckedCall checked(call);
  const ForwardTensors tensors = tensors_with_data(checked, call);
  checked.check_blend(call.blend);
  for (const NumbersArgument* each : {&call.scale, &call.bias, &call.mean, &call.spread})
    check_numbers(*each);
  const KilnNormalization norm = checked.normalization(false, call.kind.activates);
  must(kilnNormalizationForwardInference(
      checked.handle(), norm.get(), call.blend.alpha, tensors.x, call.x.data, call.scale.data,
      call.bias.data, call.mean.data, call.spread.data, tensors.z,
      call.kind.adds ? call.z.data : nullptr, call.blend.beta, tensors.y, writable(call.y.data)));
}

void normalize_in_training(const NormalizationCall& call) {
  CheckedCall checked(call);
  const ForwardTensors tensors = tensors_with_data(checked, call);
  check_images_of_training(checked, call);
  checked.check_blend(call.blend);
  check_numbers(call.scale);
  check_numbers(call.bias);
  const bool running = both(call.running_mean, call.running_variance);
  const bool saves = both(call.mean, call.spread);
  std::byte* const rows = saves ? nullptr : checked.take_rows(rows_of_training);
  void* const mean = saves ? writable(call.mean.data) : rows;
  void* const deviation = saves ? writable(call.spread.data) : rows + checked.row_bytes();
  const void* const z = call.kind.adds ? call.z.data : nullptr;
  const auto factor_in_float = static_cast<float>(call.factor);
  const void* const factor = checked.type() == CUDNN_DATA_DOUBLE
                                 ? static_cast<const void*>(&call.factor)
                                 : &factor_in_float;
  if (call.workspace.has_value()) {
    const GrantedPlan granted = training_plan(checked, call, tensors, running);
    if (checked.has_workspace_for(granted)) {
      const LentWorkspace lent = checked.lend();
      must(kilnExecuteNormalizationForwardTraining(
          checked.handle(), granted.plan, call.blend.alpha, call.x.data, call.scale.data,
          call.bias.data, z, factor, writable(call.running_mean.data),
          writable(call.running_variance.data), mean, deviation, call.blend.beta,
          writable(call.y.data)));
      return;
    }
  }
  const KilnNormalization norm = checked.normalization(running, call.kind.activates);
  must(kilnNormalizationForwardTraining(checked.handle(), norm.get(), call.blend.alpha, tensors.x,
                                        call.x.data, call.scale.data, call.bias.data, tensors.z, z,
                                        factor, writable(call.running_mean.data),
                                        writable(call.running_variance.data), mean, deviation,
                                        call.blend.beta, tensors.y, writable(call.y.data)));
}

// The plan's workspace is the same with and without statistics to update.
std::size_t training_workspace(const NormalizationCall& call) {
  CheckedCall checked(call);
  check_images_of_training(checked, call);
  const ForwardTensors tensors = tensors_of(checked, call);
  return checked.workspace(rows_of_training, training_plan(checked, call, tensors, true));
}

std::size_t reserve_space(const NormalizationCall& call) {
  const CheckedCall checked(call);
  return 0;
}

}  // namespace kiln::cudnn
