#include "core/enumeration.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace kiln {
namespace {

#define VALUE(identifier, name) \
  { identifier, #identifier, name }

constexpr Enumerator statuses[] = {
    VALUE(KILN_STATUS_SUCCESS, "success"),
    VALUE(KILN_STATUS_BAD_PARAM, "bad parameter"),
    VALUE(KILN_STATUS_NOT_INITIALIZED, "not initialized"),
    VALUE(KILN_STATUS_NOT_SUPPORTED, "not supported"),
    VALUE(KILN_STATUS_NO_DEVICE, "no device"),
    VALUE(KILN_STATUS_NO_COMPILER, "no compiler"),
    VALUE(KILN_STATUS_COMPILE_FAILED, "compile failed"),
    VALUE(KILN_STATUS_EXECUTION_FAILED, "execution failed"),
    VALUE(KILN_STATUS_ALLOC_FAILED, "allocation failed"),
    VALUE(KILN_STATUS_VERSION_MISMATCH, "version mismatch"),
    VALUE(KILN_STATUS_INTERNAL_ERROR, "internal error"),
    VALUE(KILN_STATUS_NOT_CACHED, "not cached"),
};
constexpr Enumerator data_types[] = {
    VALUE(KILN_DATA_FLOAT, "f32"),
    VALUE(KILN_DATA_DOUBLE, "f64"),
    VALUE(KILN_DATA_HALF, "f16"),
    VALUE(KILN_DATA_BFLOAT16, "bf16"),
};
constexpr Enumerator formats[] = {
    VALUE(KILN_TENSOR_NCHW, "nchw"),
    VALUE(KILN_TENSOR_NHWC, "nhwc"),
};
constexpr Enumerator convolution_modes[] = {
    VALUE(KILN_CONVOLUTION, "conv"),
    VALUE(KILN_CROSS_CORRELATION, "xcorr"),
};
constexpr Enumerator math_modes[] = {
    VALUE(KILN_MATH_DEFAULT, "default"),
    VALUE(KILN_MATH_STRICT, "strict"),
    VALUE(KILN_MATH_TF32, "tf32"),
};
constexpr Enumerator nan_propagations[] = {
    VALUE(KILN_PROPAGATE_NAN, "propagate"),
    VALUE(KILN_NOT_PROPAGATE_NAN, "ignore"),
};
constexpr Enumerator pooling_modes[] = {
    VALUE(KILN_POOLING_MAX, "max"),
    VALUE(KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, "avg_include"),
    VALUE(KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, "avg_exclude"),
};
constexpr Enumerator activation_modes[] = {
    VALUE(KILN_ACTIVATION_IDENTITY, "identity"),
    VALUE(KILN_ACTIVATION_SIGMOID, "sigmoid"),
    VALUE(KILN_ACTIVATION_RELU, "relu"),
    VALUE(KILN_ACTIVATION_TANH, "tanh"),
    VALUE(KILN_ACTIVATION_CLIPPED_RELU, "clipped_relu"),
    VALUE(KILN_ACTIVATION_LEAKY_RELU, "leaky_relu"),
    VALUE(KILN_ACTIVATION_ELU, "elu"),
    VALUE(KILN_ACTIVATION_GELU_ERF, "gelu_erf"),
    VALUE(KILN_ACTIVATION_GELU_TANH, "gelu_tanh"),
    VALUE(KILN_ACTIVATION_SILU, "silu"),
    VALUE(KILN_ACTIVATION_SOFTPLUS, "softplus"),
    VALUE(KILN_ACTIVATION_HARD_SWISH, "hard_swish"),
    VALUE(KILN_ACTIVATION_ABS, "abs"),
    VALUE(KILN_ACTIVATION_EXP, "exp"),
    VALUE(KILN_ACTIVATION_LOG, "log"),
    VALUE(KILN_ACTIVATION_SQRT, "sqrt"),
    VALUE(KILN_ACTIVATION_SQUARE, "square"),
    VALUE(KILN_ACTIVATION_POW, "pow"),
    VALUE(KILN_ACTIVATION_MISH, "mish"),
    VALUE(KILN_ACTIVATION_HARD_SIGMOID, "hard_sigmoid"),
    VALUE(KILN_ACTIVATION_CLIP, "clip"),
    VALUE(KILN_ACTIVATION_LINEAR, "linear"),
};
constexpr Enumerator softmax_algorithms[] = {
    VALUE(KILN_SOFTMAX_FAST, "fast"),
    VALUE(KILN_SOFTMAX_ACCURATE, "accurate"),
    VALUE(KILN_SOFTMAX_LOG, "log"),
};
constexpr Enumerator softmax_modes[] = {
    VALUE(KILN_SOFTMAX_MODE_CHANNEL, "channels"),
    VALUE(KILN_SOFTMAX_MODE_INSTANCE, "image"),
};
constexpr Enumerator normalization_statistics[] = {
    VALUE(KILN_NORMALIZATION_BATCH, "batch"),
    VALUE(KILN_NORMALIZATION_INSTANCE, "instance"),
    VALUE(KILN_NORMALIZATION_GROUP, "group"),
    VALUE(KILN_NORMALIZATION_PIXEL, "pixel"),
};
constexpr Enumerator tensor_operations[] = {
    VALUE(KILN_OP_TENSOR_ADD, "add"), VALUE(KILN_OP_TENSOR_MUL, "mul"),
    VALUE(KILN_OP_TENSOR_MIN, "min"), VALUE(KILN_OP_TENSOR_MAX, "max"),
    VALUE(KILN_OP_TENSOR_SUB, "sub"), VALUE(KILN_OP_TENSOR_DIV, "div"),
    VALUE(KILN_OP_TENSOR_EQ, "eq"),   VALUE(KILN_OP_TENSOR_NE, "ne"),
    VALUE(KILN_OP_TENSOR_LT, "lt"),   VALUE(KILN_OP_TENSOR_LE, "le"),
    VALUE(KILN_OP_TENSOR_GT, "gt"),   VALUE(KILN_OP_TENSOR_GE, "ge"),
};
constexpr Enumerator reductions[] = {
    VALUE(KILN_REDUCE_SUM, "reduce_sum"),     VALUE(KILN_REDUCE_MEAN, "reduce_mean"),
    VALUE(KILN_REDUCE_MAX, "reduce_max"),     VALUE(KILN_REDUCE_MIN, "reduce_min"),
    VALUE(KILN_REDUCE_NORM2, "reduce_norm2"), VALUE(KILN_REDUCE_MUL, "reduce_mul"),
    VALUE(KILN_REDUCE_NORM1, "reduce_norm1"), VALUE(KILN_REDUCE_AMAX, "reduce_amax"),
};
constexpr Enumerator device_kinds[] = {
    VALUE(KILN_DEVICE_CUDA, "cuda"),
    VALUE(KILN_DEVICE_HOST, "host"),
};
constexpr Enumerator kernel_origins[] = {
    VALUE(KILN_KERNEL_COMPILED, "compiled"),
    VALUE(KILN_KERNEL_MEMORY, "memory"),
    VALUE(KILN_KERNEL_DISK, "disk"),
    VALUE(KILN_KERNEL_BUNDLE, "bundle"),
};
constexpr Enumerator plan_texts[] = {
    VALUE(KILN_PLAN_PROBLEM, "problem"),
    VALUE(KILN_PLAN_ENGINE, "engine"),
    VALUE(KILN_PLAN_TILE, "tile"),
    VALUE(KILN_PLAN_CONSTANTS, "constants"),
    VALUE(KILN_PLAN_SOURCE, "source"),
    VALUE(KILN_PLAN_PTX, "ptx"),
    VALUE(KILN_PLAN_COMPILE_LOG, "compile log"),
    VALUE(KILN_PLAN_REFUSALS, "refusals"),
    VALUE(KILN_PLAN_CACHE_KEY, "cache key"),
    VALUE(KILN_PLAN_ARCHITECTURE, "architecture"),
};
constexpr Enumerator stand_ins[] = {
    VALUE(KILN_STAND_IN_NONE, "none"),
    VALUE(KILN_STAND_IN_QUICK, "quick"),
    VALUE(KILN_STAND_IN_ANY, "any"),
};
#undef VALUE

// Every enumeration of kiln.h with its table.
#define EACH_ENUMERATION(DO)                     \
  DO(kilnStatus_t, statuses)                     \
  DO(kilnDataType_t, data_types)                 \
  DO(kilnTensorFormat_t, formats)                \
  DO(kilnConvolutionMode_t, convolution_modes)   \
  DO(kilnMathMode_t, math_modes)                 \
  DO(kilnNanPropagation_t, nan_propagations)     \
  DO(kilnPoolingMode_t, pooling_modes)           \
  DO(kilnActivationMode_t, activation_modes)     \
  DO(kilnSoftmaxAlgorithm_t, softmax_algorithms) \
  DO(kilnSoftmaxMode_t, softmax_modes)           \
  DO(kilnOpTensorOp_t, tensor_operations)        \
  DO(kilnReduceTensorOp_t, reductions)           \
  DO(kilnDeviceKind_t, device_kinds)             \
  DO(kilnKernelOrigin_t, kernel_origins)         \
  DO(kilnPlanText_t, plan_texts)                 \
  DO(kilnStandIn_t, stand_ins)                   \
  DO(kilnNormalizationStatistics_t, normalization_statistics)

#define INDEX(type, table) index_of_##table,
enum Index : std::size_t { EACH_ENUMERATION(INDEX) };
#undef INDEX

#define ENTRY(type, table) {#type, table},
constexpr Enumeration enumerations[] = {EACH_ENUMERATION(ENTRY)};
#undef ENTRY

std::string numbered(const Enumerator& enumerator) {
  return cat(enumerator.identifier, " (", enumerator.value, ")");
}

// Names all values of a short enumeration, the first and the last of a long one.
std::string expectation(const Enumeration& enumeration) {
  const auto& values = enumeration.values;
  if (values.size() > 4)
    return cat("a ", enumeration.type, ", ", numbered(values.front()), " to ",
               numbered(values.back()));
  std::vector<std::string> all;
  for (const Enumerator& value : values) all.push_back(numbered(value));
  return alternatives(all);
}

}  // namespace

std::span<const Enumeration> all_enumerations() { return enumerations; }

#define FUNCTION(type, table) \
  const Enumeration& enumeration_of(type) { return enumerations[index_of_##table]; }
EACH_ENUMERATION(FUNCTION)
#undef FUNCTION
#undef EACH_ENUMERATION

const Enumerator* find_enumerator(const Enumeration& enumeration, int value) {
  for (const Enumerator& enumerator : enumeration.values)
    if (enumerator.value == value) return &enumerator;
  return nullptr;
}

const Enumerator* find_enumerator(const Enumeration& enumeration, std::string_view name) {
  for (const Enumerator& enumerator : enumeration.values)
    if (enumerator.name == name) return &enumerator;
  return nullptr;
}

void refuse_enumerator(const Enumeration& enumeration, std::string_view field, int value) {
  std::string other;  // the enumeration that has the value, if arguments were swapped
  for (const Enumeration& candidate : enumerations) {
    const Enumerator* found = find_enumerator(candidate, value);
    const bool statuses_own = &candidate == &enumerations[index_of_statuses];  // any small number
    if (found != nullptr && !statuses_own)
      other = cat(" (", found->identifier, ", a ", candidate.type, ")");
  }
  fail(KILN_STATUS_BAD_PARAM, field, " is ", value, other, "; expected ", expectation(enumeration));
}

}  // namespace kiln
