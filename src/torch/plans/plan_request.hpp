// The key of the table of plans: everything that decides which kernel serves a call.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "kiln/kiln.h"
#include "torch/convolution/convolution.hpp"
#include "torch/convolution/layout.hpp"

namespace kiln::torch {

// What a plan computes. A transposed convolution is the data gradient of another convolution, so
// its forward pass is `transposed`, its data gradient is `forward`, and its filter gradient is
// `filter_gradient` with input and gradient exchanged.
enum class Pass : std::int32_t {
  forward,          // a: x, b: w, c: y; with bias, residual, activation and moments if requested
  transposed,       // likewise
  data_gradient,    // a: dy, b: w, c: dx; with another gradient of x as residual if requested
  filter_gradient,  // a: x, b: dw, c: dy
  bias_gradient,    // a: dy, c: db
  add,              // a: a bias, or a tensor of y's sizes, c: y
  product,          // a, b, c: matrices; with bias, residual and activation if requested
  // Of pooling, whose window is the sizes of b:
  pool,           // a: x, c: y
  pool_gradient,  // a: x, c: dy; the result, dx, has the residual's strides
  // Between a tensor and a number for each channel of each image; the factor is the coefficient:
  multiply,      // a: x, b: the numbers, or a tensor of x's sizes, c: y
  add_channels,  // a: x, b: the numbers, times the factor, c: y
  sum_channels,  // a: x, c: the numbers: sums, times the factor
  // Of batch normalization (plans/normalization_plan.hpp):
  moments,                       // a: x
  combine_moments,               // a: the numbers of parts and channels, as sizes
  normalize,                     // a: x, c: y; with residual and activation if requested
  normalize_gradient,            // a: x, b: dy, c: dx and dresidual; with residual and activation
  normalize_gradient_from_sums,  // a: x, b: the gradient after the activation, c: dx
  // Of normalization by the statistics of groups or pixels, of `statistics`:
  normalize_rows,           // a: x, c: y; with residual and activation if requested
  normalize_rows_gradient,  // a: x, b: dy, c: dx and dresidual; with residual and activation
};
const char* name_of(Pass pass);

// A plain value without padding bytes, so that requests are compared and hashed as bytes.
struct PlanRequest {
  struct Side {
    Extents sizes, strides;
  };

  Pass pass;
  std::int32_t type;         // kilnDataType_t
  std::int32_t device_kind;  // kilnDeviceKind_t
  std::int32_t device_index;
  std::int32_t rank;        // dimensions, including batch and channels
  std::int32_t math;        // kilnMathMode_t
  std::int32_t alignment;   // of all operands, in bytes
  std::int32_t activation;  // kilnActivationMode_t
  std::int32_t has_bias, has_residual;
  std::int32_t has_moments;  // of a convolution: whether it makes the moments of its result
  // Of a data gradient: whether it goes on through the normalization, residual and activation that
  // made x (activation, coefficient and has_bias are then those of the normalization). All tensors
  // of x's sizes have the strides of c. Refused where that takes a pass over the result.
  std::int32_t has_norm, has_norm_residual;
  // Of a normalization, whose has_bias says whether there are scale and bias (2: a scale alone):
  // whether running statistics are updated, statistics are constants to the gradient, and the
  // residual's gradient is wanted.
  std::int32_t has_running, is_frozen, has_dresidual;
  // Of a normalization by rows: kilnNormalizationStatistics_t, and whether the mean is 0.
  std::int32_t statistics, is_uncentered;
  std::int32_t pooling, ceil_mode;  // of a pooling: kilnPoolingMode_t
  std::uint64_t coefficient;        // the bits of the activation's coefficient or factor, a double
  std::uint64_t epsilon;            // the bits of a normalization's epsilon, a double
  std::uint64_t refusal;            // the address of a refusal's text; 0 if Kiln serves the call
  std::int64_t groups;
  std::int64_t bias_stride;
  std::array<std::int64_t, 3> stride, padding, dilation;
  std::array<std::int64_t, 3> padding_after;  // after the last element; may be negative
  Side a, b, c;
  Extents residual_strides;

  PlanRequest() {
    std::memset(static_cast<void*>(this), 0, sizeof *this);
    type = KILN_DATA_FLOAT;
    device_kind = KILN_DEVICE_CUDA;
    math = KILN_MATH_DEFAULT;
    activation = KILN_ACTIVATION_IDENTITY;
  }

  void set(Side& side, const Tensor& tensor);
  void set(const Geometry& geometry);
  // For a gradient of a transposed convolution: the filter does not reach all of the output
  // padding, so the convolution over the output gradient ends earlier.
  void end_at_output_padding(const Geometry& geometry);
  double activation_coefficient() const;

  friend bool operator==(const PlanRequest& one, const PlanRequest& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<PlanRequest>);

struct PlanRequestHash {
  std::size_t operator()(const PlanRequest& request) const;
};

// Kiln's type of a tensor that check_call accepted.
kilnDataType_t type_of(const Tensor& tensor);
kilnDeviceKind_t device_kind_of(const Tensor& tensor);

// The common alignment of the addresses in bytes: a power of two up to 16.
std::int32_t alignment_of(std::initializer_list<const void*> addresses);

// Makes a plan on the device of `handle` and does not finalize it. Null if Kiln refuses, with the
// reason in `why`.
kilnPlan_t create_plan(kilnHandle_t handle, const PlanRequest& request, std::string& why);

struct NormalizationOperands;
// The operands in the order a, b, residual, bias, c. Operands that the pass does not have are null.
struct Operands {
  const void *a = nullptr, *b = nullptr, *residual = nullptr, *bias = nullptr;
  void *c = nullptr, *moments = nullptr;
  const NormalizationOperands* norm = nullptr;  // of a data gradient with has_norm
};
// Enqueues the plan on the handle's stream. filter_gradient writes to b. Throws std::runtime_error.
void execute_plan(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                  const Operands& operands);

}  // namespace kiln::torch
