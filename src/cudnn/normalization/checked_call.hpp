// A call of batch normalization whose descriptors fit together: Kiln's descriptors for it, and the
// memory that its steps may use.
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>

#include "cudnn/normalization/call.hpp"
#include "cudnn/operations/granted_plan.hpp"

namespace kiln::cudnn {

using KilnNormalization = Object<kilnNormalizationDescriptor_t, kilnCreateNormalizationDescriptor,
                                 kilnDestroyNormalizationDescriptor>;

inline void* writable(const void* data) { return const_cast<void*>(data); }

// Sizes and type of what each channel, or each activation, of x has one of. Throws.
Shape parameter_shape(const Shape& x, const char* x_name, const NormalizationKind& kind);

// Throw BAD_PARAM. The second function tells whether two optional arguments are given.
void check_numbers(const NumbersArgument& argument);
bool both(const NumbersArgument& one, const NumbersArgument& other);

class CheckedCall {
 public:
  explicit CheckedCall(const NormalizationCall& call);

  kilnHandle_t handle() const { return context_.handle.get(); }
  cudnnDataType_t type() const { return x_.type; }
  std::int64_t images() const { return x_.dims[0]; }
  std::int64_t numbers() const { return numbers_; }     // channels, or activations of an image
  std::size_t row_bytes() const { return row_bytes_; }  // of one number of each, aligned

  // Kiln's descriptor of a tensor of x's sizes and type; per activation as {N, C * H * W}.
  kilnTensorDescriptor_t tensor(const TensorArgument& argument);
  // The same, of a tensor whose address must be given.
  kilnTensorDescriptor_t tensor_with_data(const TensorArgument& argument);

  void check_blend(const BlendArgument& blend) const;

  // Kiln's descriptor with the call's epsilon and, if asked for, its activation.
  KilnNormalization normalization(bool running, bool activates) const;

  // `rows` rows of numbers that last until the call is done: of the workspace or, in a function
  // without one, of the handle's memory.
  std::byte* take_rows(std::size_t rows);

  // A key of everything that decides on the plan of an operation on these tensors; null ones are
  // left out.
  std::string key(char operation, bool running,
                  std::initializer_list<const TensorArgument*> tensors) const;

  // Whether what is left of the workspace is enough for the plan, and is lent for it.
  bool has_workspace_for(const GrantedPlan& granted) const {
    return granted.plan != nullptr && granted.workspace <= free_bytes_;
  }
  LentWorkspace lend() const { return {handle(), free_, free_bytes_}; }

  // The workspace with which take_rows(rows) and the plan are served wherever it begins.
  std::size_t workspace(std::size_t rows, const GrantedPlan& granted) const;

 private:
  void check_parameters(const DescriptorArgument& argument, const Shape& expected) const;

  const NormalizationCall& call_;
  cudnnContext& context_;
  const Shape& x_;
  std::int64_t numbers_ = 0;
  std::size_t row_bytes_ = 0;
  std::byte* free_ = nullptr;  // what is left of the workspace
  std::size_t free_bytes_ = 0;
  std::deque<KilnTensor> views_;
};

}  // namespace kiln::cudnn
