// The policy, which decides whether Kiln or PyTorch serves a convolution.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "torch/plans/plan_table.hpp"

namespace kiln::torch {

enum class Policy : std::int32_t {
  wait,        // a new shape waits for its kernel, so results are the same bits from the first call
  background,  // until the kernel is compiled: Kiln's stand-in or, without one, PyTorch
  measure,     // as background; then Kiln and PyTorch are timed once, and the faster one is used
  native       // PyTorch
};

void set_policy(Policy policy);
// Sets the calling thread's policy; -1 restores the process's policy.
void set_thread_policy(int policy);
// Sets which stand-ins the policy `background` may use, for plans that are made later.
void set_stand_in(kilnStandIn_t allowed);

// A hash that identifies a layer in all passes: types and sizes of input and filter, and the
// geometry. PyTorch computes gradients on its own threads; by this hash they get the policy that
// the forward call had from its thread.
std::uint64_t layer_of(const Tensor& x, const Tensor& w, const Geometry& geometry);
Policy forward_policy(std::uint64_t layer);
Policy backward_policy(std::uint64_t layer);

// Makes the entry's plan if the policy waits for it. Returns whether Kiln can execute it now; false
// under the policy `native`.
bool kiln_can(PlanEntry& entry, kilnHandle_t handle, Policy policy);

// A call under the policy `measure`.
struct MeasuredCall {
  Entries entries{};  // by result; null where a result is not requested
  kilnHandle_t handle = nullptr;
  std::array<Tensor*, 3> operands{};  // the large ones that `run` computes with; none is null
  // Computes all requested results, those in `native` by PyTorch.
  std::function<void(Results native)> run;
};
// Computes the results in the cheapest known way. The first call for which all plans are ready
// times every way on the current stream and stores the times, in this process and in the file of
// choices. Returns which results PyTorch computed.
Results run_cheapest(const MeasuredCall& call);

}  // namespace kiln::torch
