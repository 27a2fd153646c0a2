// One call of batch normalization in either family, cudnnBatchNormalization... and
// cudnnNormalization..., and its execution by Kiln.
#pragma once

#include <array>
#include <optional>

#include "cudnn/descriptors/layers.hpp"
#include "cudnn/library/handle.hpp"

namespace kiln::cudnn {

// What is computed. Kiln has one algorithm for all modes that take statistics of each channel.
struct NormalizationKind {
  bool per_activation = false;  // statistics over images alone, else of each channel
  bool activates = false;
  bool adds = false;  // z, before the activation
};

// Throw BAD_PARAM for a number that an enumeration does not have, and NOT_SUPPORTED for groups.
NormalizationKind kind_of(cudnnBatchNormMode_t mode,
                          cudnnBatchNormOps_t operations = CUDNN_BATCHNORM_OPS_BN);
NormalizationKind kind_of(cudnnNormMode_t mode, cudnnNormOps_t operations, cudnnNormAlgo_t algo,
                          int groups);
void check_groups(int groups);

// Arguments, with their names in messages.
struct TensorArgument {
  cudnnTensorDescriptor_t desc = nullptr;
  const char* desc_name = "";
  const void* data = nullptr;
  const char* name = "";
};
struct DescriptorArgument {
  cudnnTensorDescriptor_t desc = nullptr;
  const char* name = nullptr;  // null: there is none
};
struct NumbersArgument {  // one of each channel, or of each activation
  const void* data = nullptr;
  const char* name = "";
};
struct BlendArgument {  // alpha * result + beta * what was there
  const void* alpha = nullptr;
  const void* beta = nullptr;
  const char* alpha_name = "alpha";
  const char* beta_name = "beta";
};
struct WorkspaceArgument {
  void* address = nullptr;
  std::size_t bytes = 0;
  const char* name = "";
};

// The arguments of every function. Those that a function does not have stay as they are here.
struct NormalizationCall {
  cudnnHandle_t handle = nullptr;
  NormalizationKind kind{};
  cudnnActivationDescriptor_t activation = nullptr;
  double epsilon = 0;
  BlendArgument blend{};
  TensorArgument x{}, z{}, y{}, dy{}, dz{}, dx{};
  std::array<DescriptorArgument, 2> parameters{};  // of all the numbers below
  NumbersArgument scale{}, bias{};
  double factor = 0;
  NumbersArgument running_mean{}, running_variance{};
  NumbersArgument mean{}, spread{};  // the inverse deviation; in inference the variance
  BlendArgument parameters_blend{};
  NumbersArgument dscale{}, dbias{};
  std::optional<WorkspaceArgument> workspace{};  // none: the function has no such argument
};

// Throw on failure.
void normalize_in_inference(const NormalizationCall& call);
void normalize_in_training(const NormalizationCall& call);
void differentiate_normalization(const NormalizationCall& call);

// The bytes with which the two functions above never want for workspace. Without them Kiln takes
// fewer blocks for the sums, and refuses what needs numbers kept from one step to the next.
std::size_t training_workspace(const NormalizationCall& call);
std::size_t gradient_workspace(const NormalizationCall& call);

// cudnnGet...ReserveSpaceSize: Kiln computes everything again from x.
std::size_t reserve_space(const NormalizationCall& call);

// Sets the descriptor of the numbers: {1, C, 1, ...}, or {1, C, H, W} per activation, in the
// compute type of x.
void derive(cudnnTensorDescriptor_t descriptor, const char* name, cudnnTensorDescriptor_t x,
            const NormalizationKind& kind);

}  // namespace kiln::cudnn
