// Plans, and the immediate call that finds or makes them.
#include <variant>

#include "api/objects.hpp"

namespace kiln::api {

namespace {

std::string refusals_text(const Plan& plan) {
  std::string text;
  for (const EngineRefusal& refusal : plan.refusals()) {
    text += cat(refusal.engine, ": ", refusal.reason, "\n");
  }
  return text;
}

double scalar(const void* value, DataType type) {
  return type == KILN_DATA_DOUBLE ? *static_cast<const double*>(value)
                                  : *static_cast<const float*>(value);
}

}  // namespace

ConvolutionProblem read_problem(kilnTensorDescriptor_t x, kilnFilterDescriptor_t w,
                                kilnConvolutionDescriptor_t convolution, kilnTensorDescriptor_t y) {
  const Tensor& x_tensor = checked(x, "xDesc").tensor;
  const Tensor& w_tensor = checked(w, "wDesc").tensor;
  const ConvolutionSpec& spec = checked(convolution, "convDesc").spec;
  return make_convolution(spec, x_tensor, w_tensor, checked(y, "yDesc").tensor);
}

void execute_forward(const Plan& plan, const void* alpha, const void* x, const void* w,
                     const void* beta, void* y, void* stream) {
  check_pointer(alpha, "alpha", "the address of a host value of the compute type");
  check_pointer(beta, "beta", "the address of a host value of the compute type");
  const DataType type = compute_type(std::get<ConvolutionProblem>(plan.problem()).type);
  void* const operands[] = {const_cast<void*>(x), const_cast<void*>(w), y};
  plan.execute(operands, scalar(alpha, type), scalar(beta, type), stream);
}

}  // namespace kiln::api

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::destroy;
using kiln::api::execute_forward;
using kiln::api::guarded;
using kiln::api::read_problem;
using kiln::api::refusals_text;

kilnStatus_t kilnCreateConvolutionForwardPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                              kilnFilterDescriptor_t wDesc,
                                              kilnConvolutionDescriptor_t convDesc,
                                              kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return guarded([&] {
    check_pointer(plan, "plan", "where to store the new plan");
    *plan = nullptr;
    const kilnContext& context = checked(handle, "handle");
    *plan = new kilnPlanStruct(context.device, read_problem(xDesc, wDesc, convDesc, yDesc));
  });
}

kilnStatus_t kilnFinalizePlan(kilnPlan_t plan) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    if (object.plan.finalized()) return;
    try {
      object.plan.finalize();
    } catch (...) {
      object.refusals = refusals_text(object.plan);
      throw;
    }
    object.refusals = refusals_text(object.plan);
  });
}

kilnStatus_t kilnDestroyPlan(kilnPlan_t plan) { return destroy(plan, "plan"); }

kilnStatus_t kilnExecuteConvolutionForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                           const void* x, const void* w, const void* beta,
                                           void* y) {
  return guarded([&] {
    const kilnContext& context = checked(handle, "handle");
    const kiln::Plan& object = checked(plan, "plan").plan;
    if (&object.device() != context.device.get()) {
      kiln::fail(KILN_STATUS_BAD_PARAM, "handle is of device ", context.device->description().name,
                 " ", context.device->description().ordinal, "; expected that of the plan, ",
                 object.device().description().name, " ", object.device().description().ordinal);
    }
    execute_forward(object, alpha, x, w, beta, y, context.stream);
  });
}

kilnStatus_t kilnConvolutionForward(kilnHandle_t handle, const void* alpha,
                                    kilnTensorDescriptor_t xDesc, const void* x,
                                    kilnFilterDescriptor_t wDesc, const void* w,
                                    kilnConvolutionDescriptor_t convDesc, const void* beta,
                                    kilnTensorDescriptor_t yDesc, void* y) {
  return guarded([&] {
    kilnContext& context = checked(handle, "handle");
    const kiln::Problem problem = read_problem(xDesc, wDesc, convDesc, yDesc);
    const auto plan = context.plans.get(context.device, problem);
    execute_forward(*plan, alpha, x, w, beta, y, context.stream);
  });
}
