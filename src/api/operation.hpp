// What the C functions of all operations share: making a plan, executing one, and both at once.
#pragma once

#include <array>
#include <initializer_list>
#include <span>

#include "api/objects.hpp"

namespace kiln::api {

// A tensor argument and the name that kiln.h gives it.
struct Argument {
  const char* name = nullptr;
  const void* address = nullptr;
};

// The operands of an execution, in the order of operands_of(problem).
class Arguments {
 public:
  static constexpr std::size_t most = 16;
  Arguments() = default;
  Arguments(std::initializer_list<Argument> list) {  // NOLINT(google-explicit-constructor)
    for (const Argument& argument : list) add(argument);
  }
  void add(const Argument& argument) { list_[count_++] = argument; }
  std::span<const Argument> all() const { return std::span(list_).first(count_); }

 private:
  std::array<Argument, most> list_;
  std::size_t count_ = 0;
};

// A plan of `operation` ("PoolingForward") for the problem that make() gives.
// `optional` are its tensors that may be left out.
template <class Make>
kilnStatus_t create_plan(const char* operation, kilnHandle_t handle, kilnPlan_t* plan,
                         const Make& make, std::initializer_list<OptionalTensor> optional = {},
                         const char* function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&] {
        check_pointer(plan, "plan", "where to store the new plan");
        *plan = nullptr;
        const kilnContext& context = checked(handle, "handle");
        *plan = new kilnPlanStruct(operation, context.device, Problem(make()), optional);
      },
      function);
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
  const char* alpha2_name = "alpha2";
};

// A pointer is null where its tensor's descriptor is. Throws BAD_PARAM.
void check_left_out(std::span<const OptionalTensor> tensors, std::span<const void* const> pointers);

// Checks that the handle is of the plan's device. Throws BAD_PARAM.
void check_device(const kilnContext& context, const Plan& plan);

// Runs a finalized plan on operands in the order of operands_of(problem). No allocation, no lock,
// no text unless it throws.
void execute(const Plan& plan, const ScalarArguments& scalars, const Arguments& arguments,
             const kilnContext& context);

// kilnExecute<operation>: the plan must be of that operation, on the handle's device.
// `optional` are the pointers that go with create_plan's optional tensors, in that order.
kilnStatus_t execute_plan(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                          const ScalarArguments& scalars, const Arguments& arguments,
                          std::initializer_list<const void*> optional = {},
                          const char* function = __builtin_FUNCTION()) noexcept;

// kiln<operation>: the plan of the problem that make() gives, found or made.
template <class Make>
kilnStatus_t run_at_once(kilnHandle_t handle, const ScalarArguments& scalars,
                         const Arguments& arguments, const Make& make,
                         std::initializer_list<OptionalTensor> optional = {},
                         std::initializer_list<const void*> pointers = {},
                         const char* function = __builtin_FUNCTION()) noexcept {
  return guarded(
      [&] {
        kilnContext& context = checked(handle, "handle");
        check_left_out(optional, pointers);
        const auto plan = context.plans.get(context.device, Problem(make()));
        execute(*plan, scalars, arguments, context);
      },
      function);
}

// The tensor behind a descriptor; behind one that may be null, null.
const Tensor& tensor_of(kilnTensorDescriptor_t descriptor, const char* name);
const Tensor& tensor_of(kilnFilterDescriptor_t descriptor, const char* name);
const Tensor* optional_tensor(kilnTensorDescriptor_t descriptor, const char* name);

}  // namespace kiln::api
