// What a plan may use, and finding its fastest kernel by measuring.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "api/operation.hpp"
#include "plan/tune/tune.hpp"

using kiln::api::check_open;
using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::guarded;

kilnStatus_t kilnSetPlanWorkspaceLimit(kilnPlan_t plan, size_t bytes) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    check_open(object, "kilnSetPlanWorkspaceLimit");
    object.options.grant.workspace = std::min(bytes, kiln::most_workspace);
  });
}

kilnStatus_t kilnSetPlanStandIn(kilnPlan_t plan, kilnStandIn_t allowed) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    kiln::check_enumerator("allowed", allowed);
    check_open(object, "kilnSetPlanStandIn");
    object.stand_in_allowed = allowed;
  });
}

kilnStatus_t kilnTunePlan(kilnHandle_t handle, kilnPlan_t plan, const void* const* operands,
                          int count, double budgetMs) {
  return guarded([&] {
    const kilnContext& context = checked(handle, "handle");
    kilnPlanStruct& object = checked(plan, "plan");
    check_open(object, "kilnTunePlan");
    kiln::api::check_device(context, object.plan);
    check_pointer(operands, "operands", "an array of device addresses");
    const auto wanted = kiln::operands_of(object.plan.problem()).size();
    if (count < 0 || static_cast<std::size_t>(count) != wanted)
      kiln::fail(KILN_STATUS_BAD_PARAM, "count is ", count, "; expected ", wanted,
                 ", the tensors of the plan's kilnExecute", object.operation);
    if (!(budgetMs >= 0) || std::isinf(budgetMs))
      kiln::fail(KILN_STATUS_BAD_PARAM, "budgetMs is ", budgetMs,
                 "; expected a number of milliseconds, at least 0");
    std::vector<void*> addresses;
    for (int i = 0; i < count; ++i) addresses.push_back(const_cast<void*>(operands[i]));
    // A transposed convolution is a data gradient, whose filter comes first.
    if (std::strcmp(object.operation, "ConvolutionTransposed") == 0)
      std::swap(addresses[0], addresses[1]);
    const std::size_t granted = object.options.grant.workspace;
    if (context.workspace.bytes < granted)
      kiln::fail(KILN_STATUS_BAD_PARAM, "the handle's workspace has ", context.workspace.bytes,
                 " bytes; expected the ", granted,
                 " that the plan was granted (kilnSetPlanWorkspaceLimit)");
    const kiln::api::AtWork at_work(object);
    // What the plan was not granted holds copies of the operands.
    auto* const memory = static_cast<std::byte*>(context.workspace.address);
    const kiln::Lent lent{{granted > 0 ? memory : nullptr, granted},
                          {memory + granted, context.workspace.bytes - granted}};
    kiln::tune_plan(object.plan, object.options, addresses, context.stream, lent, budgetMs);
  });
}
