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
    moments      // of each channel of v as it is stored; last
  };
  Kind kind = Kind::bias;
  std::optional<Tensor> tensor{};  // the bias, or z; no z: beta scales the output's previous values
  Activation activation{};
};

// Operations in the order of execution, beginning with v = alpha * sum. Without a residual, beta *
// (the output's previous value) is added first.
using EpilogueList = std::vector<EpilogueOperation>;

inline constexpr std::size_t most_epilogue_operations = 8;

// y = act(alpha * sum + bias + beta * (z or y)), or beta's part after the activation.
struct ConvolutionEpilogue {
  bool bias = false;           // one element per filter is added
  bool residual = false;       // beta scales a separate tensor z instead of y's previous values
  bool residual_last = false;  // beta's part follows the activation; false without an activation
  Activation activation;
  bool moments = false;  // those of each channel of the result are a result too

  friend bool operator==(const ConvolutionEpilogue&, const ConvolutionEpilogue&) = default;
};

// The canonical form of a list. Throws BAD_PARAM if it is too long or has an invalid activation,
// and NOT_SUPPORTED with the operation's number (from 0) if no kernel implements it: two operations
// of one kind (identities do not count), a bias after an activation, or one after the moments.
ConvolutionEpilogue make_epilogue(const EpilogueList& list);

// Whether an execution is given an address for the operation.
bool has_operand(const EpilogueOperation& operation);

// The tensor of the list's operation of this kind; null if there is none.
const Tensor* tensor_of(const EpilogueList& list, EpilogueOperation::Kind kind);

// The list of act(v + beta * (z or y) + bias): z and bias may be null.
EpilogueList bias_activation_epilogue(const Tensor* z, const Tensor* bias,
                                      const Activation& activation);

}  // namespace kiln
