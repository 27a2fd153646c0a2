// Everything that decides which kernel serves a call: the key of the table of plans.
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

// What is computed. A transposed convolution's passes are those of the convolution it is the
// gradient of: its forward pass is `transposed`, its data gradient `forward`, its filter gradient
// `filter_gradient` with input and gradient exchanged.
enum class Pass : std::int32_t {
  forward,          // a: x, b: w, c: y; with bias, residual and activation if asked for
  transposed,       // a: x, b: w, c: y
  data_gradient,    // a: dy, b: w, c: dx
  filter_gradient,  // a: x, b: dw, c: dy
  bias_gradient,    // a: dy, c: db
  add_bias          // a: bias, c: y
};
const char* name_of(Pass pass);

// A plain value without padding bytes: equal requests are equal in memory.
struct PlanRequest {
  struct Side {
    Extents sizes, strides;
  };

  Pass pass;
  std::int32_t type;         // kilnDataType_t
  std::int32_t device_kind;  // kilnDeviceKind_t
  std::int32_t device_index;
  std::int32_t rank;        // with batch and channels
  std::int32_t math;        // kilnMathMode_t
  std::int32_t alignment;   // bytes, of every operand
  std::int32_t activation;  // kilnActivationMode_t
  std::int32_t has_bias, has_residual;
  std::uint64_t coefficient;  // the bits of the activation's double
  std::uint64_t refusal;      // the address of a refusal's text; 0: a plan is wanted
  std::int64_t groups;
  std::int64_t bias_stride;
  std::array<std::int64_t, 3> stride, padding, dilation;
  std::array<std::int64_t, 3> padding_after;  // behind the last element; may be less than 0
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
  // For a gradient of a transposed convolution: what its output padding added beyond a stride is
  // looked at only as far as the filter reaches, so the convolution over it ends earlier.
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

// The types of a tensor that check_call accepted, in Kiln's words.
kilnDataType_t type_of(const Tensor& tensor);
kilnDeviceKind_t device_kind_of(const Tensor& tensor);

// What the addresses have in common, in bytes: a power of two up to 16.
std::int32_t alignment_of(std::initializer_list<const void*> addresses);

// Makes the plan, not yet finalized, on the device of `handle`. Null where Kiln refuses; `why` then
// says so.
kilnPlan_t create_plan(kilnHandle_t handle, const PlanRequest& request, std::string& why);

// The operands in the order a, b, residual, bias, c; those that the pass lacks are null.
struct Operands {
  const void *a = nullptr, *b = nullptr, *residual = nullptr, *bias = nullptr;
  void* c = nullptr;
};
// Enqueues it on the handle's stream. filter_gradient writes to b. Throws std::runtime_error.
void execute_plan(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                  const Operands& operands);

}  // namespace kiln::torch
