// The operations of a convolution on its accumulators before it stores them: the caller's list, and
// the canonical form that kernels implement.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "problem/activation.hpp"
#include "problem/tensor/tensor.hpp"

namespace kiln {

// One operation on a value v of the output.
struct EpilogueOperation {
  enum class Kind : std::uint8_t {
    bias,        // v + bias[channel]
    residual,    // v + beta * z, z of the output's sizes
    activation,  // act(v)
    moments,     // of each channel of v as it is stored; last
    gradient     // v * act'(p), p a normalization of `tensor`, and sums of what is stored; last
  };
  Kind kind = Kind::bias;
  // The bias, z or a gradient's x; no z: beta scales the output's previous values.
  std::optional<Tensor> tensor{};
  Activation activation{};
  // Of a gradient: whether p has scale and bias, and a residual.
  bool affine = true;
  std::optional<Tensor> residual{};
};

// Operations in the order of execution, beginning with v = alpha * sum. Without a residual, beta *
// (the output's previous value) is added first.
using EpilogueList = std::vector<EpilogueOperation>;

inline constexpr std::size_t most_epilogue_operations = 8;
inline constexpr std::size_t most_epilogue_operands = 11;  // of a legal list

// The gradient of an activation behind a normalization: the operation's result g is rounded to its
// type, p = (x - m) * s * scale + bias + residual, and g * act'(p) is stored. Sums of what is
// stored, in the compute type, are results too: dbias = sum of g, dscale = sum of g (x - m) s.
struct NormalizationGradient {
  bool affine = true;
  bool residual = false;
  Activation activation;

  friend bool operator==(const NormalizationGradient&, const NormalizationGradient&) = default;
};

// y = act(alpha * sum + bias + beta * (z or y)), or beta's part after the activation.
struct ConvolutionEpilogue {
  bool bias = false;           // one element per filter is added
  bool residual = false;       // beta scales a separate tensor z instead of y's previous values
  bool residual_last = false;  // beta's part follows the activation; false without an activation
  Activation activation;
  bool moments = false;  // those of each channel of the result are a result too
  std::optional<NormalizationGradient> gradient{};  // there are no activation and no moments then

  friend bool operator==(const ConvolutionEpilogue&, const ConvolutionEpilogue&) = default;
};

// The canonical form of a list. Throws BAD_PARAM if it is too long or has an invalid activation,
// and NOT_SUPPORTED with the operation's number (from 0) if no kernel implements it: two operations
// of one kind (identities do not count), a bias after an activation, one after the moments or a
// gradient, or a gradient after an activation.
ConvolutionEpilogue make_epilogue(const EpilogueList& list);

// The addresses that an execution is given for the operation.
std::size_t operands_of(const EpilogueOperation& operation);

// The tensor of the list's operation of this kind; null if there is none.
const Tensor* tensor_of(const EpilogueList& list, EpilogueOperation::Kind kind);

// The list of act(v + beta * (z or y) + bias): z and bias may be null.
EpilogueList bias_activation_epilogue(const Tensor* z, const Tensor* bias,
                                      const Activation& activation);

}  // namespace kiln
