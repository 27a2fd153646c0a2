// When a convolution is Kiln's: the policy, and the road that a call takes under it.
#pragma once

#include <cstdint>
#include <functional>

#include "torch/plans/plan_table.hpp"

namespace kiln::torch {

enum class Policy : std::int32_t {
  wait,        // a new shape waits for its kernel: the same bits from the first call on
  background,  // Kiln's stand-in until the kernel is there, and where there is none, native
  measure,     // then both are timed once, and the cheaper one stays
  native       // PyTorch's own
};

void set_policy(Policy policy);
// Of the calling thread, until it is taken back with -1.
void set_thread_policy(int policy);
// What may stand in under the policy `background`, for plans that are made from here on.
void set_stand_in(kilnStandIn_t allowed);

// What tells layers apart whichever pass they are in: types and sizes of input and filter, and the
// geometry. A policy that a forward call had by its thread holds for the gradients of that layer,
// which PyTorch computes on threads of its own.
std::uint64_t layer_of(const Tensor& x, const Tensor& w, const Geometry& geometry);
Policy forward_policy(std::uint64_t layer);
Policy backward_policy(std::uint64_t layer);

// Makes the plan of an entry as far as the policy waits for it. Returns whether Kiln can execute it
// now; under the policy `native`, false.
bool kiln_can(PlanEntry& entry, kilnHandle_t handle, Policy policy);

// A call under the policy `measure`.
struct MeasuredCall {
  Entries entries{};  // by result; null: not asked for
  kilnHandle_t handle = nullptr;
  const Tensor& fresh;  // the operand that the layer before has just written
  // Computes all results that are asked for, those in `native` by PyTorch.
  std::function<void(Results native)> run;
};
// Computes the results the cheapest way that is known; the first time all plans are there, every
// way is timed on the current stream, and what each costs is remembered, in this process and in the
// file of choices. Returns which results PyTorch computed.
Results run_cheapest(const MeasuredCall& call);

}  // namespace kiln::torch
