// What the C functions of all operations share: making a plan, executing one, and both at once.
#pragma once

#include <array>
#include <initializer_list>

#include "api/objects.hpp"

namespace kiln::api {

// A tensor argument and the name that kiln.h gives it.
struct Argument {
  const char* name;
  const void* address;
};

// A plan of `operation` ("PoolingForward") for the problem that make() gives.
template <class Make>
kilnStatus_t create_plan(const char* operation, kilnHandle_t handle, kilnPlan_t* plan,
                         const Make& make) noexcept {
  return guarded([&] {
    check_pointer(plan, "plan", "where to store the new plan");
    *plan = nullptr;
    const kilnContext& context = checked(handle, "handle");
    *plan = new kilnPlanStruct(operation, context.device, Problem(make()));
  });
}

// As float and as double: all bytes are 0.
inline constexpr double zero = 0;

// Host values as a caller gives them, and the names that kiln.h gives them.
struct ScalarArguments {
  const void* alpha = nullptr;
  const void* beta = nullptr;
  const void* alpha2 = &zero;  // of operations that have none
  const char* alpha_name = "alpha";
  const char* beta_name = "beta";
};

// Runs a finalized plan on operands in the order of operands_of(problem). No allocation, no lock,
// no text unless it throws.
void execute(const Plan& plan, const ScalarArguments& scalars,
             std::initializer_list<Argument> arguments, void* stream);

// kilnExecute<operation>: the plan must be of that operation, on the handle's device.
kilnStatus_t execute_plan(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                          const ScalarArguments& scalars,
                          std::initializer_list<Argument> arguments) noexcept;

// kiln<operation>: the plan of the problem that make() gives, found or made.
template <class Make>
kilnStatus_t run_at_once(kilnHandle_t handle, const ScalarArguments& scalars,
                         std::initializer_list<Argument> arguments, const Make& make) noexcept {
  return guarded([&] {
    kilnContext& context = checked(handle, "handle");
    const auto plan = context.plans.get(context.device, Problem(make()));
    execute(*plan, scalars, arguments, context.stream);
  });
}

// The tensor behind a descriptor; behind one that may be null, null.
const Tensor& tensor_of(kilnTensorDescriptor_t descriptor, const char* name);
const Tensor& tensor_of(kilnFilterDescriptor_t descriptor, const char* name);
const Tensor* optional_tensor(kilnTensorDescriptor_t descriptor, const char* name);

}  // namespace kiln::api
