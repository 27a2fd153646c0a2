#include "cudnn/operations/convolution_call.hpp"

#include <bit>
#include <optional>

#include "cudnn/library/settings.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/background.hpp"
#include "cudnn/operations/plan_table.hpp"

namespace kiln::cudnn {
namespace {

constexpr std::int64_t usual_alignment = 16;  // bytes; GPU allocations have at least this

// The common alignment of the operands' addresses, up to the usual one.
std::int64_t alignment_of(const ConvolutionCall& call) {
  auto bits = static_cast<std::uintptr_t>(usual_alignment);
  for (const void* address : {call.x, call.w, call.y, call.z, call.bias})
    bits |= reinterpret_cast<std::uintptr_t>(address);
  return std::int64_t{1} << std::countr_zero(bits);
}

// The Kiln descriptors for a call.
struct Objects {
  kilnHandle_t handle;
  kilnTensorDescriptor_t x, y, z = nullptr, bias = nullptr;
  kilnFilterDescriptor_t w;
  kilnConvolutionDescriptor_t convolution;
  kilnActivationDescriptor_t activation = nullptr;
  std::optional<KilnConvolution> less_aligned;

  explicit Objects(const ConvolutionCall& call)
      : handle(context_of(call.handle).handle.get()),
        x(kiln_of(call.x_desc, names_of(call.pass).x)),
        y(kiln_of(call.y_desc, names_of(call.pass).y)),
        w(kiln_of(call.w_desc, names_of(call.pass).w)),
        convolution(kiln_of(call.convolution_desc)) {
    if (const std::int64_t alignment = alignment_of(call); alignment < usual_alignment) {
      set(less_aligned.emplace(), call.convolution_desc->fields);
      convolution = less_aligned->get();
      must(kilnSetConvolutionAlignment(convolution, alignment));
    }
    if (call.pass != Pass::fused_forward) return;
    if (call.z_desc != nullptr) z = kiln_of(call.z_desc, "zDesc");
    if (call.bias_desc != nullptr) bias = kiln_of(call.bias_desc, "biasDesc");
    activation = kiln_of(call.activation_desc);
  }
};

static_assert(sizeof(Shape) == 2 * CUDNN_DIM_MAX * 8 + 4 * 4, "no padding");
static_assert(sizeof(ConvolutionFields) == 3 * most_spatial * 4 + 6 * 4, "no padding");
static_assert(sizeof(ActivationFields) == 2 * 8 + 4 * 4, "no padding");

ConvolutionCall make_call(Pass pass, cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                          cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                          cudnnTensorDescriptor_t y) {
  ConvolutionCall call;
  call.pass = pass;
  call.handle = handle;
  call.x_desc = x;
  call.w_desc = w;
  call.convolution_desc = convolution;
  call.y_desc = y;
  return call;
}

}  // namespace

ConvolutionCall call_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y) {
  return make_call(Pass::forward, handle, x, w, convolution, y);
}
ConvolutionCall call_of(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx) {
  return make_call(Pass::backward_data, handle, dx, w, convolution, dy);
}
ConvolutionCall call_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                        cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw) {
  return make_call(Pass::backward_filter, handle, x, dw, convolution, dy);
}

DescriptorNames names_of(Pass pass) {
  switch (pass) {
    case Pass::backward_data: return {"dxDesc", "wDesc", "dyDesc"};
    case Pass::backward_filter: return {"xDesc", "dwDesc", "dyDesc"};
    default: return {"xDesc", "wDesc", "yDesc"};
  }
}

void run_at_once(const ConvolutionCall& call) {
  const Objects o(call);
  auto* const x = const_cast<void*>(call.x);
  auto* const w = const_cast<void*>(call.w);
  auto* const y = const_cast<void*>(call.y);
  switch (call.pass) {
    case Pass::forward:
      return must(kilnConvolutionForward(o.handle, call.alpha, o.x, x, o.w, w, o.convolution,
                                         call.beta, o.y, y));
    case Pass::fused_forward:
      return must(kilnConvolutionBiasActivationForward(o.handle, call.alpha, o.x, x, o.w, w,
                                                       o.convolution, call.beta, o.z, call.z,
                                                       o.bias, call.bias, o.activation, o.y, y));
    case Pass::backward_data:
      return must(kilnConvolutionBackwardData(o.handle, call.alpha, o.w, w, o.y, y, o.convolution,
                                              call.beta, o.x, x));
    case Pass::backward_filter:
      return must(kilnConvolutionBackwardFilter(o.handle, call.alpha, o.x, x, o.y, y, o.convolution,
                                                call.beta, o.w, w));
  }
}

void run(const ConvolutionCall& call) {
  if (settings().policy == Policy::background)
    run_in_background(call);
  else
    run_at_once(call);
}

kilnPlan_t create_plan(const ConvolutionCall& call) {
  const Objects o(call);
  kilnPlan_t plan = nullptr;
  switch (call.pass) {
    case Pass::forward:
      must(kilnCreateConvolutionForwardPlan(o.handle, o.x, o.w, o.convolution, o.y, &plan));
      break;
    case Pass::fused_forward:
      must(kilnCreateConvolutionBiasActivationForwardPlan(o.handle, o.x, o.w, o.convolution, o.z,
                                                          o.bias, o.activation, o.y, &plan));
      break;
    case Pass::backward_data:
      must(kilnCreateConvolutionBackwardDataPlan(o.handle, o.w, o.y, o.convolution, o.x, &plan));
      break;
    case Pass::backward_filter:
      must(kilnCreateConvolutionBackwardFilterPlan(o.handle, o.x, o.y, o.convolution, o.w, &plan));
      break;
  }
  return plan;
}

void execute_plan(kilnPlan_t plan, const ConvolutionCall& call) {
  auto* const handle = context_of(call.handle).handle.get();
  auto* const x = const_cast<void*>(call.x);
  auto* const w = const_cast<void*>(call.w);
  auto* const y = const_cast<void*>(call.y);
  switch (call.pass) {
    case Pass::forward:
      return must(kilnExecuteConvolutionForward(handle, plan, call.alpha, x, w, call.beta, y));
    case Pass::fused_forward:
      return must(kilnExecuteConvolutionBiasActivationForward(handle, plan, call.alpha, x, w,
                                                              call.beta, call.z, call.bias, y));
    case Pass::backward_data:
      return must(kilnExecuteConvolutionBackwardData(handle, plan, call.alpha, w, y, call.beta, x));
    case Pass::backward_filter:
      return must(
          kilnExecuteConvolutionBackwardFilter(handle, plan, call.alpha, x, y, call.beta, w));
  }
}

std::string key_of(const ConvolutionCall& call) {
  const cudnnContext& context = context_of(call.handle);
  const DescriptorNames names = names_of(call.pass);
  constexpr std::size_t enough = 1024;
  std::string key;
  key.reserve(enough);
  append(key, call.pass);
  append(key, context.device_kind);
  append(key, context.ordinal);
  append(key, alignment_of(call));
  append(key, shape_of(call.x_desc, names.x));
  append(key, shape_of(call.y_desc, names.y));
  append(key, shape_of(call.w_desc, names.w));
  append(key, set_before(call.convolution_desc).fields);
  if (call.pass != Pass::fused_forward) return key;
  append(key, call.z_desc != nullptr ? shape_of(call.z_desc, "zDesc") : Shape());
  append(key, call.bias_desc != nullptr ? shape_of(call.bias_desc, "biasDesc") : Shape());
  kiln_of(call.activation_desc);  // throws if it was never set
  append(key, call.activation_desc->fields);
  return key;
}

}  // namespace kiln::cudnn
