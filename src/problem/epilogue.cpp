#include "problem/epilogue.hpp"

#include "core/error.hpp"

namespace kiln {

using Kind = EpilogueOperation::Kind;

ConvolutionEpilogue make_epilogue(const EpilogueList& list) {
  if (list.size() > most_epilogue_operations) {
    fail(KILN_STATUS_BAD_PARAM, "epilogue has ", list.size(), " operations; expected at most ",
         most_epilogue_operations);
  }
  ConvolutionEpilogue out;
  bool active = false, adds = false;
  const auto once = [](bool before, std::size_t index, const char* what) {
    if (before) {
      fail(KILN_STATUS_NOT_SUPPORTED, "epilogue operation ", index, " is a second ", what,
           "; expected at most one");
    }
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const EpilogueOperation& operation = list[i];
    if (out.moments) {
      fail(KILN_STATUS_NOT_SUPPORTED, "epilogue operation ", i,
           " follows the moments; expected the moments last, as they are those of what is stored");
    }
    if (out.gradient) {
      fail(KILN_STATUS_NOT_SUPPORTED, "epilogue operation ", i,
           " follows a normalization's gradient; expected the gradient last, as its sums are those "
           "of what is stored");
    }
    switch (operation.kind) {
      case Kind::bias:
        once(out.bias, i, "bias");
        if (active) {
          fail(KILN_STATUS_NOT_SUPPORTED, "epilogue operation ", i,
               " is a bias after an activation; expected the bias before it");
        }
        out.bias = true;
        break;
      case Kind::residual:
        once(adds, i, "residual");
        adds = true;
        out.residual = operation.tensor.has_value();
        out.residual_last = active;
        break;
      case Kind::activation: {
        const Activation activation = make_activation(operation.activation);
        if (activation.mode == KILN_ACTIVATION_IDENTITY) break;
        once(active, i, "activation");
        active = true;
        out.activation = activation;
        break;
      }
      case Kind::moments: out.moments = true; break;
      case Kind::gradient:
        if (active) {
          fail(KILN_STATUS_NOT_SUPPORTED, "epilogue operation ", i,
               " is a normalization's gradient after an activation; expected bias and residual "
               "alone before it");
        }
        out.gradient = {operation.affine, operation.residual.has_value(),
                        make_activation(operation.activation)};
        break;
    }
  }
  return out;
}

std::size_t operands_of(const EpilogueOperation& operation) {
  // x, mean, deviation, dscale and dbias; scale and bias; the residual.
  if (operation.kind == Kind::gradient)
    return 5 + (operation.affine ? 2 : 0) + (operation.residual ? 1 : 0);
  return operation.tensor || operation.kind == Kind::moments ? 1 : 0;
}

const Tensor* tensor_of(const EpilogueList& list, Kind kind) {
  for (const EpilogueOperation& operation : list)
    if (operation.kind == kind && operation.tensor) return &*operation.tensor;
  return nullptr;
}

EpilogueList bias_activation_epilogue(const Tensor* z, const Tensor* bias,
                                      const Activation& activation) {
  EpilogueList list;
  if (bias != nullptr) list.push_back({.kind = Kind::bias, .tensor = *bias});
  if (z != nullptr) list.push_back({.kind = Kind::residual, .tensor = *z});
  list.push_back({.kind = Kind::activation, .activation = activation});
  return list;
}

}  // namespace kiln
