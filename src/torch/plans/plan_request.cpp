#include "torch/plans/plan_request.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "torch/plans/descriptors.hpp"
#include "torch/plans/epilogue_list.hpp"
#include "torch/plans/matmul_plan.hpp"
#include "torch/plans/normalization_plan.hpp"
#include "torch/plans/workspace.hpp"

namespace kiln::torch {
namespace {

void set_convolution(kilnConvolutionDescriptor_t descriptor, const PlanRequest& r) {
  const kilnDataType_t compute = r.type == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
  must(kilnSetConvolutionNdDescriptor(descriptor, r.rank - 2, r.padding.data(),
                                      r.padding_after.data(), r.stride.data(), r.dilation.data(),
                                      KILN_CROSS_CORRELATION, compute));
  must(kilnSetConvolutionGroupCount(descriptor, r.groups));
  must(kilnSetConvolutionMathMode(descriptor, static_cast<kilnMathMode_t>(r.math)));
  must(kilnSetConvolutionAlignment(descriptor, r.alignment));
}

// What a convolution's kernel does to its result, in a list: bias, residual, activation, moments.
bool has_list(const PlanRequest& r) {
  if (r.pass == Pass::forward) return r.has_moments != 0;  // the rest has a plan of its own
  return r.has_bias != 0 || r.has_residual != 0 || r.has_moments != 0 ||
         r.activation != KILN_ACTIVATION_IDENTITY;
}

kilnPlan_t create_with_list(kilnHandle_t handle, const PlanRequest& r, kilnTensorDescriptor_t x,
                            kilnFilterDescriptor_t w, kilnConvolutionDescriptor_t convolution,
                            kilnTensorDescriptor_t bias, kilnTensorDescriptor_t y) {
  EpilogueDescriptor epilogue;
  set_list(epilogue, r, bias);
  kilnPlan_t plan = nullptr;
  const auto create = r.pass == Pass::forward ? kilnCreateConvolutionForwardEpiloguePlan
                                              : kilnCreateConvolutionTransposedEpiloguePlan;
  must(create(handle, x, w, convolution, epilogue, y, &plan));
  return plan;
}

kilnStatus_t execute_with_list(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                               const Operands& o) {
  const auto [one, zero] = scalars_of(request);
  const ListOperands list(request, o);
  const auto execute = request.pass == Pass::forward ? kilnExecuteConvolutionForwardEpilogue
                                                     : kilnExecuteConvolutionTransposedEpilogue;
  return execute(handle, plan, one, o.a, o.b, request.has_residual != 0 ? one : zero, list.count,
                 list.all.data(), o.c);
}

// Throws if every engine would take a pass over the result for what its epilogue asks for.
void must_be_carried(kilnPlan_t plan) {
  int count = 0;
  must(kilnGetPlanEngineCount(plan, &count));
  for (int i = 0; i < count; ++i) {
    const char *name = nullptr, *refusal = nullptr;
    must(kilnGetPlanEngine(plan, i, &name, &refusal));
    if (*refusal == '\0' && std::string_view(name) != "gradient_pass") return;
  }
  kilnDestroyPlan(plan);
  throw std::runtime_error("kiln: no engine takes the normalization's gradient in its epilogue");
}

// The data gradient, as the transposed convolution of dy, with another gradient of x added, or
// going on through the normalization that made x.
kilnPlan_t create_with_gradient(kilnHandle_t handle, const PlanRequest& r,
                                kilnTensorDescriptor_t dy, kilnFilterDescriptor_t w,
                                kilnConvolutionDescriptor_t convolution,
                                kilnTensorDescriptor_t dx) {
  EpilogueDescriptor epilogue;
  if (r.has_residual != 0) {
    TensorDescriptor residual;
    set_tensor(residual, r, {r.c.sizes, r.residual_strides});
    must(kilnAddEpilogueResidual(epilogue, residual));
  }
  NormalizationDescriptor normalization;
  set_normalization(normalization, r);
  must(kilnAddEpilogueNormalizationGradient(epilogue, normalization, dx,
                                            r.has_norm_residual != 0 ? dx : nullptr));
  kilnPlan_t plan = nullptr;
  must(
      kilnCreateConvolutionTransposedEpiloguePlan(handle, dy, w, convolution, epilogue, dx, &plan));
  must_be_carried(plan);
  return plan;
}

void execute_with_gradient(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                           const Operands& o) {
  const auto [one, zero] = scalars_of(request);
  const NormalizationOperands& norm = *o.norm;
  std::array<const void*, 9> list{};
  int count = 0;
  if (request.has_residual != 0) list[count++] = o.residual;
  list[count++] = norm.x;
  if (request.has_bias != 0) {
    list[count++] = norm.scale;
    list[count++] = norm.bias;
  }
  list[count++] = norm.mean;
  list[count++] = norm.inverse_deviation;
  if (request.has_norm_residual != 0) list[count++] = norm.residual;
  list[count++] = norm.dscale;
  list[count++] = norm.dbias;
  const kilnStatus_t status = kilnExecuteConvolutionTransposedEpilogue(
      handle, plan, one, o.a, o.b, request.has_residual != 0 ? one : zero, count, list.data(), o.c);
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a convolution failed");
}

kilnPlan_t create_pool(kilnHandle_t handle, const PlanRequest& r) {
  TensorDescriptor x, y;
  set_tensor(x, r, r.a);
  set_tensor(y, r, r.c);
  PoolingDescriptor pooling;
  must(kilnSetPoolingNdDescriptor(
      pooling, static_cast<kilnPoolingMode_t>(r.pooling), KILN_PROPAGATE_NAN, r.rank - 2,
      r.b.sizes.data(), r.padding.data(), r.padding.data(), r.stride.data(), r.dilation.data()));
  must(kilnSetPoolingCeilMode(pooling, r.ceil_mode));
  kilnPlan_t plan = nullptr;
  if (r.pass == Pass::pool) {
    must(kilnCreatePoolingForwardPlan(handle, pooling, x, y, &plan));
    return plan;
  }
  TensorDescriptor dx;
  set_tensor(dx, r, {r.a.sizes, r.residual_strides});
  must(kilnCreatePoolingBackwardPlan(handle, pooling, y, x, dx, &plan));
  return plan;
}

bool is_by_channel(Pass pass) { return pass >= Pass::multiply && pass <= Pass::sum_channels; }

kilnPlan_t create_by_channel(kilnHandle_t handle, const PlanRequest& r) {
  TensorDescriptor a, b, c;
  set_tensor(a, r, r.a);
  set_tensor(c, r, r.c);
  kilnPlan_t plan = nullptr;
  if (r.pass == Pass::sum_channels) {
    must(kilnCreateReduceTensorPlan(handle, KILN_REDUCE_SUM, a, c, &plan));
    return plan;
  }
  set_tensor(b, r, r.b);
  const auto op = r.pass == Pass::multiply ? KILN_OP_TENSOR_MUL : KILN_OP_TENSOR_ADD;
  must(kilnCreateOpTensorPlan(handle, op, a, b, c, &plan));
  return plan;
}

kilnStatus_t execute_by_channel(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                                const Operands& o) {
  const auto [one, zero] = scalars_of(request);
  const double factor_d = request.activation_coefficient();
  const auto factor_f = static_cast<float>(factor_d);
  const void* const factor = request.type == KILN_DATA_DOUBLE ? static_cast<const void*>(&factor_d)
                                                              : static_cast<const void*>(&factor_f);
  if (request.pass == Pass::sum_channels)
    return kilnExecuteReduceTensor(handle, plan, factor, o.a, zero, o.c);
  return kilnExecuteOpTensor(handle, plan, one, o.a, factor, o.b, zero, o.c);
}

kilnPlan_t create(kilnHandle_t handle, const PlanRequest& r) {
  if (is_normalization(r.pass)) return create_normalization(handle, r);
  if (r.pass == Pass::pool || r.pass == Pass::pool_gradient) return create_pool(handle, r);
  if (is_by_channel(r.pass)) return create_by_channel(handle, r);
  if (r.pass == Pass::product) return create_product(handle, r);
  TensorDescriptor a, c, residual, bias;
  FilterDescriptor b;
  ConvolutionDescriptor convolution;
  ActivationDescriptor activation;
  set_tensor(a, r, r.a);
  set_tensor(c, r, r.c);
  kilnPlan_t plan = nullptr;
  if (r.pass == Pass::bias_gradient) {
    must(kilnCreateConvolutionBackwardBiasPlan(handle, a, c, &plan));
    return plan;
  }
  if (r.pass == Pass::add) {
    must(kilnCreateAddTensorPlan(handle, a, c, &plan));
    return plan;
  }
  must(kilnSetFilterNdDescriptorStrided(b, static_cast<kilnDataType_t>(r.type), r.rank,
                                        r.b.sizes.data(), r.b.strides.data()));
  set_convolution(convolution, r);
  if (r.has_bias != 0 && r.has_norm == 0) set_bias(bias, r, 1);
  switch (r.pass) {
    case Pass::transposed:
      if (has_list(r)) return create_with_list(handle, r, a, b, convolution, bias, c);
      must(kilnCreateConvolutionTransposedPlan(handle, a, b, convolution, c, &plan));
      return plan;
    case Pass::data_gradient:
      if (r.has_norm != 0) return create_with_gradient(handle, r, a, b, convolution, c);
      must(kilnCreateConvolutionBackwardDataPlan(handle, b, a, convolution, c, &plan));
      return plan;
    case Pass::filter_gradient:
      must(kilnCreateConvolutionBackwardFilterPlan(handle, a, c, convolution, b, &plan));
      return plan;
    default: break;
  }
  if (has_list(r)) return create_with_list(handle, r, a, b, convolution, bias, c);
  if (r.has_residual != 0) set_tensor(residual, r, {r.c.sizes, r.residual_strides});
  must(kilnSetActivationDescriptor(activation, static_cast<kilnActivationMode_t>(r.activation),
                                   r.activation_coefficient()));
  must(kilnCreateConvolutionBiasActivationForwardPlan(
      handle, a, b, convolution,
      r.has_residual != 0 ? static_cast<kilnTensorDescriptor_t>(residual) : nullptr,
      r.has_bias != 0 ? static_cast<kilnTensorDescriptor_t>(bias) : nullptr, activation, c, &plan));
  return plan;
}

}  // namespace

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::transposed: return "transposed";
    case Pass::data_gradient: return "data gradient";
    case Pass::filter_gradient: return "filter gradient";
    case Pass::bias_gradient: return "bias gradient";
    case Pass::add: return "add";
    case Pass::product: return "matrix product";
    case Pass::pool: return "pool";
    case Pass::pool_gradient: return "pool gradient";
    case Pass::multiply: return "multiply";
    case Pass::add_channels: return "add channels";
    case Pass::sum_channels: return "sum channels";
    case Pass::moments: return "moments";
    case Pass::combine_moments: return "combine moments";
    case Pass::normalize: return "normalize";
    case Pass::normalize_gradient: return "normalize gradient";
    case Pass::normalize_gradient_from_sums: return "normalize gradient from sums";
    case Pass::normalize_rows: return "normalize rows";
    case Pass::normalize_rows_gradient: return "normalize rows gradient";
  }
  return "";
}

void PlanRequest::set(Side& side, const Tensor& tensor) {
  std::ranges::copy(tensor.sizes().first(std::min(tensor.rank(), max_rank)), side.sizes.begin());
  std::ranges::copy(tensor.strides().first(std::min(tensor.rank(), max_rank)),
                    side.strides.begin());
}

void PlanRequest::set(const Geometry& geometry) {
  stride = geometry.stride;
  padding = geometry.padding;
  padding_after = geometry.padding_after;
  dilation = geometry.dilation;
  groups = geometry.groups;
}

void PlanRequest::end_at_output_padding(const Geometry& geometry) {
  for (int i = 0; i < geometry.spatial; ++i)
    if (geometry.output_padding[i] >= geometry.stride[i])
      padding_after[i] = geometry.padding[i] - geometry.output_padding[i];
}

double PlanRequest::activation_coefficient() const { return std::bit_cast<double>(coefficient); }

std::size_t PlanRequestHash::operator()(const PlanRequest& request) const {
  std::uint64_t words[sizeof(PlanRequest) / 8];
  static_assert(sizeof words == sizeof(PlanRequest));
  std::memcpy(words, &request, sizeof words);
  // Two independent chains, so that the multiplications of neighboring words overlap.
  std::uint64_t even = 0x9e3779b97f4a7c15, odd = 0xc2b2ae3d27d4eb4f;
  for (std::size_t i = 0; i + 1 < std::size(words); i += 2) {
    even = (std::rotl(even, 29) ^ words[i]) * 0x9fb21c651e98df25;
    odd = (std::rotl(odd, 31) ^ words[i + 1]) * 0xd6e8feb86659fd93;
  }
  if constexpr (std::size(words) % 2 != 0) even ^= words[std::size(words) - 1] * 0xd6e8feb86659fd93;
  const std::uint64_t mixed = even ^ std::rotl(odd, 17);
  return mixed ^ mixed >> 32;
}

kilnDataType_t type_of(const Tensor& tensor) {
  const LibTorch& torch = libtorch();
  if (tensor.type() == torch.float64) return KILN_DATA_DOUBLE;
  if (tensor.type() == torch.float16) return KILN_DATA_HALF;
  if (tensor.type() == torch.bfloat16) return KILN_DATA_BFLOAT16;
  return KILN_DATA_FLOAT;
}

kilnDeviceKind_t device_kind_of(const Tensor& tensor) {
  return tensor.device_type() == libtorch().cuda ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST;
}

std::int32_t alignment_of(std::initializer_list<const void*> addresses) {
  std::uintptr_t bits = 16;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  return std::int32_t{1} << std::countr_zero(bits);
}

kilnPlan_t create_plan(kilnHandle_t handle, const PlanRequest& request, std::string& why) {
  try {
    kilnPlan_t plan = create(handle, request);
    if (request.device_kind == KILN_DEVICE_CUDA) kilnSetPlanWorkspaceLimit(plan, workspace_bytes);
    return plan;
  } catch (const std::runtime_error& error) {
    why = error.what();
    return nullptr;
  }
}

void execute_plan(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                  const Operands& o) {
  const auto [one, zero] = scalars_of(request);
  kilnStatus_t status = KILN_STATUS_INTERNAL_ERROR;
  switch (request.pass) {
    case Pass::forward:
      if (has_list(request)) {
        status = execute_with_list(handle, plan, request, o);
        break;
      }
      status = kilnExecuteConvolutionBiasActivationForward(handle, plan, one, o.a, o.b,
                                                           request.has_residual != 0 ? one : zero,
                                                           o.residual, o.bias, o.c);
      break;
    case Pass::transposed:
      status = has_list(request)
                   ? execute_with_list(handle, plan, request, o)
                   : kilnExecuteConvolutionTransposed(handle, plan, one, o.a, o.b, zero, o.c);
      break;
    case Pass::data_gradient:
      if (request.has_norm != 0) return execute_with_gradient(handle, plan, request, o);
      status = kilnExecuteConvolutionBackwardData(handle, plan, one, o.b, o.a, zero, o.c);
      break;
    case Pass::filter_gradient:
      status = kilnExecuteConvolutionBackwardFilter(handle, plan, one, o.a, o.c, zero,
                                                    const_cast<void*>(o.b));
      break;
    case Pass::bias_gradient:
      status = kilnExecuteConvolutionBackwardBias(handle, plan, one, o.a, zero, o.c);
      break;
    case Pass::pool: status = kilnExecutePoolingForward(handle, plan, one, o.a, zero, o.c); break;
    case Pass::pool_gradient:
      status = kilnExecutePoolingBackward(handle, plan, one, o.c, o.a, zero,
                                          const_cast<void*>(o.residual));
      break;
    case Pass::add: status = kilnExecuteAddTensor(handle, plan, one, o.a, one, o.c); break;
    case Pass::product: status = execute_product(handle, plan, request, o); break;
    case Pass::multiply:
    case Pass::add_channels:
    case Pass::sum_channels: status = execute_by_channel(handle, plan, request, o); break;
    default: break;  // a normalization has operands of its own
  }
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a convolution failed");
}

}  // namespace kiln::torch
