#include "cudnn/operations/algorithm_query.hpp"

#include <optional>

#include "cudnn/descriptors/types.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/measure.hpp"

namespace kiln::cudnn {

void check_problem(const ConvolutionCall& call) { must(kilnDestroyPlan(create_plan(call))); }

float measure(ConvolutionCall call) {
  check_problem(call);
  const cudnnContext& context = context_of(call.handle);
  const HandlesContext current(context);
  const DescriptorNames names = names_of(call.pass);
  std::optional<DeviceMemory> made[3];
  const auto fill = [&](const void*& operand, std::size_t bytes, std::size_t at) {
    if (operand == nullptr) operand = made[at].emplace(context, bytes, Contents::zeros).get();
  };
  fill(call.x, size_in_bytes(shape_of(call.x_desc, names.x)), 0);
  fill(call.w, size_in_bytes(shape_of(call.w_desc, names.w)), 1);
  fill(call.y, size_in_bytes(shape_of(call.y_desc, names.y)), 2);
  // Scalars as float or as double, by the tensors' type.
  static constexpr double zero = 0;
  call.alpha = one_of(shape_of(call.x_desc, names.x).type);
  call.beta = &zero;
  return milliseconds(context, [&] { run_at_once(call); });
}

}  // namespace kiln::cudnn
