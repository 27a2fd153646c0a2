// What the passes of a convolution have in common.
#pragma once

#include "torch/convolution/native.hpp"
#include "torch/policy/step.hpp"

namespace kiln::torch {

// The part of a request that all passes of a call have in common.
PlanRequest request_of(const Tensor& x, const Geometry& geometry);

// The layout of the call's results: result_format(), but what PyTorch says for three dimensions of
// space on the CPU, where it depends on the kernel that PyTorch selects.
Format format_of(const Tensor& x, const Tensor& w, const Arguments& arguments);

// The sizes and strides that a tensor will have after in_format().
PlanRequest::Side side_in_format(const Tensor& tensor, Format format);
// The tensor's address if in_format() does not copy it. Else null, which counts as aligned to
// everything.
const void* address_in_format(const Tensor& tensor, Format format);

// Records for report() that PyTorch served a call, and why.
void note_refusal(Pass pass, const Tensor& x, const Tensor& w, const Geometry& geometry,
                  Refusal refusal);

// Whether Kiln serves aten::convolution and its gradients on GPUs, or on the CPU.
void set_enabled(bool cuda, bool enabled);

// While it is set, PyTorch serves this thread's calls. Returns the value before.
bool set_recorded(bool recorded);

// Whether Kiln may serve this call of PyTorch's operators: Kiln is enabled on the device of x, and
// PyTorch does not record the call.
bool is_enabled(const Tensor& x);

// A refusal if PyTorch's flags disable cuDNN, else null.
Refusal check_flags();

}  // namespace kiln::torch
