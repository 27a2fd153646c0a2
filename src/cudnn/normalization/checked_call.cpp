#include "cudnn/normalization/checked_call.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/device_memory.hpp"
#include "cudnn/operations/plan_table.hpp"

namespace kiln::cudnn {
namespace {

constexpr std::size_t alignment = 256;  // of a workspace that is lent to Kiln, and of rows

std::string sizes_of(const Shape& shape) {
  std::string out = "{";
  for (int i = 0; i < shape.rank; ++i) out += cat(i > 0 ? ", " : "", shape.dims[i]);
  return out + "}";
}

bool same_sizes(const Shape& one, const Shape& other) {
  return one.rank == other.rank && one.dims == other.dims;
}

// Whether the elements of each image follow each other in NCHW order.
bool has_dense_images(const Shape& shape) {
  std::int64_t stride = 1;
  for (int i = shape.rank - 1; i > 0; --i) {
    if (shape.dims[i] > 1 && shape.strides[i] != stride) return false;
    stride *= shape.dims[i];
  }
  return true;
}

// Of an enumeration of three operations.
NormalizationKind kind_of_operations(bool per_activation, int operations, const char* name) {
  if (operations < 0 || operations > 2)
    fail(KILN_STATUS_BAD_PARAM, name, " is ", operations, "; expected 0 to 2");
  return {per_activation, operations > 0, operations > 1};
}

}  // namespace

NormalizationKind kind_of(cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations) {
  switch (mode) {
    case CUDNN_BATCHNORM_PER_ACTIVATION:
    case CUDNN_BATCHNORM_SPATIAL:
    case CUDNN_BATCHNORM_SPATIAL_PERSISTENT:
      return kind_of_operations(mode == CUDNN_BATCHNORM_PER_ACTIVATION, operations, "bnOps");
  }
  fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode), "; expected 0 to 2");
}

NormalizationKind kind_of(cudnnNormMode_t mode, cudnnNormOps_t operations, cudnnNormAlgo_t algo,
                          int groups) {
  if (mode != CUDNN_NORM_PER_ACTIVATION && mode != CUDNN_NORM_PER_CHANNEL)
    fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode), "; expected 0 or 1");
  if (algo != CUDNN_NORM_ALGO_STANDARD && algo != CUDNN_NORM_ALGO_PERSIST)
    fail(KILN_STATUS_BAD_PARAM, "algo is ", static_cast<int>(algo), "; expected 0 or 1");
  check_groups(groups);
  return kind_of_operations(mode == CUDNN_NORM_PER_ACTIVATION, operations, "normOps");
}

void check_groups(int groups) {
  api::check_at_least(1, groups, "groupCnt");
  if (groups > 1)
    fail(KILN_STATUS_NOT_SUPPORTED, "groupCnt is ", groups,
         "; expected 1, statistics of each channel by itself");
}

Shape parameter_shape(const Shape& x, const char* x_name, const NormalizationKind& kind) {
  check_served(x, x_name);
  if (x.rank < 2)
    fail(KILN_STATUS_BAD_PARAM, x_name, " has 1 dimension; expected at least 2, of which the ",
         "second is the channels");
  std::array<int, CUDNN_DIM_MAX> dims{};
  for (int i = 0; i < x.rank; ++i)
    dims[i] = i == 1 || (i > 1 && kind.per_activation) ? static_cast<int>(x.dims[i]) : 1;
  const cudnnDataType_t type = x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return dense_shape(CUDNN_TENSOR_NCHW, type, x.rank, dims.data(), 1, "dimA");
}

void derive(cudnnTensorDescriptor_t descriptor, const char* name, cudnnTensorDescriptor_t x,
            const NormalizationKind& kind) {
  cudnnTensorStruct& derived = api::checked(descriptor, name);
  set(derived, parameter_shape(shape_of(x, "xDesc"), "xDesc", kind));
}

void check_numbers(const NumbersArgument& argument) {
  api::check_pointer(argument.data, argument.name, "the address of numbers on the device");
}

bool both(const NumbersArgument& one, const NumbersArgument& other) {
  if ((one.data == nullptr) != (other.data == nullptr))
    fail(KILN_STATUS_BAD_PARAM, one.data == nullptr ? one.name : other.name, " is null, and ",
         one.data == nullptr ? other.name : one.name, " is not; expected both, or neither");
  return one.data != nullptr;
}

CheckedCall::CheckedCall(const NormalizationCall& call)
    : call_(call), context_(context_of(call.handle)), x_(shape_of(call.x.desc, call.x.desc_name)) {
  const Shape expected = parameter_shape(x_, call.x.desc_name, call.kind);
  for (const DescriptorArgument& each : call.parameters)
    if (each.name != nullptr) check_parameters(each, expected);
  if (call.kind.activates) kiln_of(call.activation);
  const std::size_t bytes = size_in_bytes(expected);
  numbers_ = static_cast<std::int64_t>(bytes / bytes_of(expected.type));
  row_bytes_ = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), alignment));
  if (!call.workspace.has_value() || call.workspace->address == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(call.workspace->address);
  const std::size_t skipped =
      std::min<std::size_t>((alignment - begin % alignment) % alignment, call.workspace->bytes);
  free_ = static_cast<std::byte*>(call.workspace->address) + skipped;
  free_bytes_ = call.workspace->bytes - skipped;
}

void CheckedCall::check_parameters(const DescriptorArgument& argument,
                                   const Shape& expected) const {
  const Shape& shape = shape_of(argument.desc, argument.name);
  if (shape.type != expected.type)
    fail(KILN_STATUS_BAD_PARAM, argument.name, " is of ", name_of(shape.type), "; expected ",
         name_of(expected.type), " with tensors of ", name_of(x_.type));
  if (!same_sizes(shape, expected))
    fail(KILN_STATUS_BAD_PARAM, argument.name, " has sizes ", sizes_of(shape), "; expected ",
         sizes_of(expected));
  if (!served(shape) || !has_dense_images(shape))
    fail(KILN_STATUS_NOT_SUPPORTED, argument.name,
         " has gaps or another order than NCHW; expected dense numbers in NCHW order");
}

kilnTensorDescriptor_t CheckedCall::tensor(const TensorArgument& argument) {
  auto* const whole = kiln_of(argument.desc, argument.desc_name);
  const Shape& shape = argument.desc->shape;
  if (shape.type != x_.type)
    fail(KILN_STATUS_BAD_PARAM, argument.desc_name, " is of ", name_of(shape.type), "; expected ",
         name_of(x_.type), ", as ", call_.x.desc_name);
  if (!same_sizes(shape, x_))
    fail(KILN_STATUS_BAD_PARAM, argument.desc_name, " has sizes ", sizes_of(shape), "; expected ",
         sizes_of(x_), ", as ", call_.x.desc_name);
  if (!call_.kind.per_activation) return whole;
  if (!has_dense_images(shape))
    fail(KILN_STATUS_NOT_SUPPORTED, argument.desc_name,
         " has images with gaps or in another order than NCHW; expected dense images in NCHW order "
         "for statistics of each activation");
  const std::int64_t dims[] = {shape.dims[0], numbers_}, strides[] = {shape.strides[0], 1};
  const KilnTensor& view = views_.emplace_back();
  must(kilnSetTensorNdDescriptor(view.get(), kiln_type(shape.type, argument.desc_name), 2, dims,
                                 strides));
  return view.get();
}

kilnTensorDescriptor_t CheckedCall::tensor_with_data(const TensorArgument& argument) {
  auto* const out = tensor(argument);
  if (images() > 0) api::check_pointer(argument.data, argument.name, "the address of a tensor");
  return out;
}

void CheckedCall::check_blend(const BlendArgument& blend) const {
  scalar(blend.alpha, type(), blend.alpha_name);
  scalar(blend.beta, type(), blend.beta_name);
}

KilnNormalization CheckedCall::normalization(bool running, bool activates) const {
  KilnNormalization out;
  must(kilnSetNormalizationDescriptor(out.get(), 1, running ? 1 : 0, 0, call_.epsilon));
  if (activates) must(kilnSetNormalizationActivation(out.get(), kiln_of(call_.activation)));
  return out;
}

std::byte* CheckedCall::take_rows(std::size_t rows) {
  const std::size_t bytes = rows * row_bytes_;
  if (!call_.workspace.has_value()) return static_cast<std::byte*>(scratch_of(context_, bytes));
  const WorkspaceArgument& given = *call_.workspace;
  if (given.address == nullptr)
    fail(KILN_STATUS_BAD_PARAM, given.name, " is null; expected the address of at least ",
         bytes + alignment, " bytes, as the query of its size says");
  if (free_bytes_ < bytes)
    fail(KILN_STATUS_BAD_PARAM, "workSpaceSizeInBytes is ", given.bytes, "; expected at least ",
         bytes + alignment, ", as the query of its size says");
  std::byte* const out = free_;
  free_ += bytes;
  free_bytes_ -= bytes;
  return out;
}

std::string CheckedCall::key(char operation, bool running,
                             std::initializer_list<const TensorArgument*> tensors) const {
  std::string key(1, operation);
  append(key, context_.device_kind);
  append(key, context_.ordinal);
  append(key, call_.kind);
  append(key, running);
  append(key, call_.epsilon);
  for (const TensorArgument* each : tensors)
    if (each != nullptr) append(key, each->desc->shape);
  if (call_.kind.activates) append(key, set_before(call_.activation).fields);
  return key;
}

std::size_t CheckedCall::workspace(std::size_t rows, const GrantedPlan& granted) const {
  return alignment + rows * row_bytes_ + granted.workspace;
}

}  // namespace kiln::cudnn
