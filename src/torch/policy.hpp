// When a convolution is Kiln's: the policy, and the road that a call takes under it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "torch/plan_table.hpp"

namespace kiln::torch {

enum class Policy : std::int32_t {
  wait,        // a new shape waits for its kernel: the same bits from the first call on
  background,  // native until the kernel is there
  measure,     // then both are timed once, and the faster one stays
  native       // PyTorch's own
};

void set_policy(Policy policy);
// Of the calling thread, until it is taken back with -1.
void set_thread_policy(int policy);

// What tells layers apart whichever pass they are in: types and sizes of input and filter, and the
// geometry. A policy that a forward call had by its thread holds for the gradients of that layer,
// which PyTorch computes on threads of its own.
std::uint64_t layer_of(const Tensor& x, const Tensor& w, const Geometry& geometry);
Policy forward_policy(std::uint64_t layer);
Policy backward_policy(std::uint64_t layer);

enum class Road : std::uint8_t { kiln, measure, native };
// Makes the plan as far as the policy wants to wait for it.
Road road_of(PlanEntry& entry, kilnHandle_t handle, Policy policy);

// Times both on the current stream of the entry's device, and remembers the faster one, in this
// process and in the file of choices.
void measure(PlanEntry& entry, const std::function<void()>& kiln,
             const std::function<void()>& native);

}  // namespace kiln::torch
