// What a kernel does to its result, in a list: bias, residual, activation, moments.
#pragma once

#include <array>
#include <cstddef>

#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

// The bias as a tensor of the result's rank, whose dimension `along` it has.
void set_bias(kilnTensorDescriptor_t bias, const PlanRequest& request, std::size_t along);

// Adds what the request asks for.
void set_list(kilnEpilogueDescriptor_t epilogue, const PlanRequest& request,
              kilnTensorDescriptor_t bias);

// The addresses of a list's tensors, in its order.
struct ListOperands {
  std::array<const void*, 3> all{};
  int count = 0;
  ListOperands(const PlanRequest& request, const Operands& operands);
};

}  // namespace kiln::torch
