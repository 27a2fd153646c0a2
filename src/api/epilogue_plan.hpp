// Plans with an epilogue's list: making one, executing one, and both at once. A list's operands
// come after the first two of an execution, and before its result.
#pragma once

#include <cstring>
#include <iterator>

#include "api/epilogue.hpp"
#include "api/operation.hpp"

namespace kiln::api {

inline constexpr const char* operand_names[] = {
    "operands[0]", "operands[1]", "operands[2]", "operands[3]", "operands[4]", "operands[5]",
    "operands[6]", "operands[7]", "operands[8]", "operands[9]", "operands[10]"};
static_assert(std::size(operand_names) == most_epilogue_operands);

// Calls run() with these operands, of the addresses that a caller gives for a list's.
template <class Run>
kilnStatus_t run_list(const EpilogueTensors& tensors, int count, const void* const operands[],
                      const Argument& first, const Argument& second, const Argument& y,
                      const char* function, const Run& run) {
  const kilnStatus_t status = guarded([&] { tensors.check(count, operands); }, function);
  if (status != KILN_STATUS_SUCCESS) return status;
  Arguments all{first, second};
  using Kind = EpilogueOperation::Kind;
  for (const Kind kind : {Kind::residual, Kind::bias, Kind::moments, Kind::gradient})
    tensors.each_place(kind, [&](std::size_t place) {
      all.add({operand_names[place], operands[place]});
    });
  all.add(y);
  return run(all);
}

inline kilnStatus_t execute_list(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                                 const ScalarArguments& scalars, int count,
                                 const void* const operands[], const Argument& first,
                                 const Argument& second, const Argument& y,
                                 const char* function = __builtin_FUNCTION()) {
  const auto execute = [&](const Arguments& arguments) {
    return execute_plan(operation, handle, plan, scalars, arguments, {}, function);
  };
  // If it is no such plan, execute_plan refuses it.
  if (plan == nullptr || !plan->mark.is(kilnPlanStruct::mark_value) ||
      std::strcmp(plan->operation, operation) != 0)
    return execute({first, second, y});
  return run_list(plan->epilogue, count, operands, first, second, y, function, execute);
}

// The descriptor's list; of null, where that may be, an empty one.
inline EpilogueList list_of(kilnEpilogueDescriptor_t descriptor, bool may_be_null) {
  if (descriptor == nullptr && may_be_null) return {};
  return checked(descriptor, "epilogueDesc").list;
}

template <class Make>
kilnStatus_t create_list_plan(const char* operation, kilnHandle_t handle,
                              kilnEpilogueDescriptor_t epilogueDesc, kilnPlan_t* plan,
                              const Make& make, bool may_be_null = false,
                              const char* function = __builtin_FUNCTION()) {
  EpilogueTensors tensors;
  const auto make_both = [&] {
    const EpilogueList list = list_of(epilogueDesc, may_be_null);
    tensors = EpilogueTensors(list);
    return make(list);
  };
  const kilnStatus_t status = create_plan(operation, handle, plan, make_both, {}, function);
  if (status == KILN_STATUS_SUCCESS) (*plan)->epilogue = tensors;
  return status;
}

template <class Make>
kilnStatus_t run_list_at_once(kilnHandle_t handle, const ScalarArguments& scalars,
                              kilnEpilogueDescriptor_t epilogueDesc, int count,
                              const void* const operands[], const Argument& first,
                              const Argument& second, const Argument& y, const Make& make,
                              bool may_be_null = false,
                              const char* function = __builtin_FUNCTION()) {
  EpilogueTensors tensors;
  const kilnStatus_t status =
      guarded([&] { tensors = EpilogueTensors(list_of(epilogueDesc, may_be_null)); }, function);
  if (status != KILN_STATUS_SUCCESS) return status;
  return run_list(tensors, count, operands, first, second, y, function,
                  [&](const Arguments& arguments) {
                    return run_at_once(
                        handle, scalars, arguments,
                        [&] { return make(list_of(epilogueDesc, may_be_null)); }, {}, {}, function);
                  });
}

}  // namespace kiln::api
