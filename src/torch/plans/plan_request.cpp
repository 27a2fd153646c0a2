#include "torch/plans/plan_request.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>

#include "torch/plans/workspace.hpp"

namespace kiln::torch {
namespace {

[[noreturn]] void fail_with_last_message(const char* what) {
  throw std::runtime_error(std::string("kiln: ") + what + ": " + kilnGetLastErrorMessage());
}

void must(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a descriptor was refused");
}

// A descriptor that is destroyed at the end of the scope.
template <class T, kilnStatus_t (*Create)(T*), kilnStatus_t (*Destroy)(T)>
class Descriptor {
 public:
  Descriptor() { must(Create(&handle_)); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Destroy(handle_); }
  operator T() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  T handle_ = nullptr;
};
using TensorDescriptor =
    Descriptor<kilnTensorDescriptor_t, kilnCreateTensorDescriptor, kilnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<kilnFilterDescriptor_t, kilnCreateFilterDescriptor, kilnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<kilnConvolutionDescriptor_t, kilnCreateConvolutionDescriptor,
               kilnDestroyConvolutionDescriptor>;
using ActivationDescriptor = Descriptor<kilnActivationDescriptor_t, kilnCreateActivationDescriptor,
                                        kilnDestroyActivationDescriptor>;

void set_tensor(kilnTensorDescriptor_t descriptor, const PlanRequest& r,
                const PlanRequest::Side& side) {
  must(kilnSetTensorNdDescriptor(descriptor, static_cast<kilnDataType_t>(r.type), r.rank,
                                 side.sizes.data(), side.strides.data()));
}

void set_convolution(kilnConvolutionDescriptor_t descriptor, const PlanRequest& r) {
  const kilnDataType_t compute = r.type == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
  must(kilnSetConvolutionNdDescriptor(descriptor, r.rank - 2, r.padding.data(),
                                      r.padding_after.data(), r.stride.data(), r.dilation.data(),
                                      KILN_CROSS_CORRELATION, compute));
  must(kilnSetConvolutionGroupCount(descriptor, r.groups));
  must(kilnSetConvolutionMathMode(descriptor, static_cast<kilnMathMode_t>(r.math)));
  must(kilnSetConvolutionAlignment(descriptor, r.alignment));
}

kilnPlan_t create(kilnHandle_t handle, const PlanRequest& r) {
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
  if (r.pass == Pass::add_bias) {
    must(kilnCreateAddTensorPlan(handle, a, c, &plan));
    return plan;
  }
  must(kilnSetFilterNdDescriptorStrided(b, static_cast<kilnDataType_t>(r.type), r.rank,
                                        r.b.sizes.data(), r.b.strides.data()));
  set_convolution(convolution, r);
  switch (r.pass) {
    case Pass::transposed:
      must(kilnCreateConvolutionTransposedPlan(handle, a, b, convolution, c, &plan));
      return plan;
    case Pass::data_gradient:
      must(kilnCreateConvolutionBackwardDataPlan(handle, b, a, convolution, c, &plan));
      return plan;
    case Pass::filter_gradient:
      must(kilnCreateConvolutionBackwardFilterPlan(handle, a, c, convolution, b, &plan));
      return plan;
    default: break;
  }
  if (r.has_bias != 0) {
    PlanRequest::Side side{};
    side.sizes.fill(1);
    side.strides.fill(1);
    side.sizes[1] = r.c.sizes[1];
    side.strides[1] = r.bias_stride;
    set_tensor(bias, r, side);
  }
  if (r.has_residual != 0) set_tensor(residual, r, {r.c.sizes, r.residual_strides});
  must(kilnSetActivationDescriptor(activation, static_cast<kilnActivationMode_t>(r.activation),
                                   r.activation_coefficient()));
  must(kilnCreateConvolutionBiasActivationForwardPlan(
      handle, a, b, convolution,
      r.has_residual != 0 ? static_cast<kilnTensorDescriptor_t>(residual) : nullptr,
      r.has_bias != 0 ? static_cast<kilnTensorDescriptor_t>(bias) : nullptr, activation, c, &plan));
  return plan;
}

// The values 1 and 0 in the type of alpha and beta.
struct Scalars {
  const void *one, *zero;
};
Scalars scalars_of(const PlanRequest& r) {
  static const double one = 1, zero = 0;
  static const float one_f = 1, zero_f = 0;
  return r.type == KILN_DATA_DOUBLE ? Scalars{&one, &zero} : Scalars{&one_f, &zero_f};
}

}  // namespace

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::transposed: return "transposed";
    case Pass::data_gradient: return "data gradient";
    case Pass::filter_gradient: return "filter gradient";
    case Pass::bias_gradient: return "bias gradient";
    case Pass::add_bias: return "add bias";
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
  padding = padding_after = geometry.padding;
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
      status = kilnExecuteConvolutionBiasActivationForward(handle, plan, one, o.a, o.b,
                                                           request.has_residual != 0 ? one : zero,
                                                           o.residual, o.bias, o.c);
      break;
    case Pass::transposed:
      status = kilnExecuteConvolutionTransposed(handle, plan, one, o.a, o.b, zero, o.c);
      break;
    case Pass::data_gradient:
      status = kilnExecuteConvolutionBackwardData(handle, plan, one, o.b, o.a, zero, o.c);
      break;
    case Pass::filter_gradient:
      status = kilnExecuteConvolutionBackwardFilter(handle, plan, one, o.a, o.c, zero,
                                                    const_cast<void*>(o.b));
      break;
    case Pass::bias_gradient:
      status = kilnExecuteConvolutionBackwardBias(handle, plan, one, o.a, zero, o.c);
      break;
    case Pass::add_bias: status = kilnExecuteAddTensor(handle, plan, one, o.a, one, o.c); break;
  }
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a convolution failed");
}

}  // namespace kiln::torch
