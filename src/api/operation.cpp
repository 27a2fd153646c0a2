#include "api/operation.hpp"

#include <cstring>

#include "core/hexadecimal.hpp"

namespace kiln::api {
namespace {

double scalar(const void* value, DataType type) {
  return type == KILN_DATA_DOUBLE ? *static_cast<const double*>(value)
                                  : *static_cast<const float*>(value);
}

}  // namespace

void execute(const Plan& plan, const ScalarArguments& scalars, const Arguments& arguments,
             const kilnContext& context) {
  const auto read = [&](const void* value, const char* name) {
    check_pointer(value, name, "the address of a host value of the compute type");
    return scalar(value, plan.scalar_type());
  };
  Scalars values;
  values.alpha = read(scalars.alpha, scalars.alpha_name);
  values.beta = read(scalars.beta, scalars.beta_name);
  values.alpha2 = read(scalars.alpha2, scalars.alpha2_name);
  std::array<void*, Arguments::most> operands{};
  std::array<const char*, Arguments::most> names{};
  std::size_t count = 0;
  for (const Argument& argument : arguments.all()) {
    names[count] = argument.name;
    operands[count++] = const_cast<void*>(argument.address);
  }
  plan.execute(std::span(operands).first(count), values, context.stream,
               std::span(names).first(count), context.workspace);
}

void check_device(const kilnContext& context, const Plan& plan) {
  const DeviceDescription& device = plan.device().description();
  if (&plan.device() != context.device.get())
    fail(KILN_STATUS_BAD_PARAM, "handle is of ", context.device->description().name, ", ordinal ",
         context.device->description().ordinal, "; expected one of the plan's device, ",
         device.name, ", ordinal ", device.ordinal);
}

void check_left_out(std::span<const OptionalTensor> tensors,
                    std::span<const void* const> pointers) {
  for (std::size_t i = 0; i < tensors.size() && i < pointers.size(); ++i)
    if (!tensors[i].given && pointers[i] != nullptr)
      fail(KILN_STATUS_BAD_PARAM, tensors[i].name, " is ", hexadecimal(pointers[i]),
           "; expected null, as ", tensors[i].name, "Desc is");
}

kilnStatus_t execute_plan(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                          const ScalarArguments& scalars, const Arguments& arguments,
                          std::initializer_list<const void*> optional,
                          const char* function) noexcept {
  return guarded(
      [&] {
        const kilnContext& context = checked(handle, "handle");
        const kilnPlanStruct& object = checked(plan, "plan");
        if (std::strcmp(object.operation, operation) != 0) {
          fail(KILN_STATUS_BAD_PARAM, "plan is from kilnCreate", object.operation,
               "Plan; expected one from kilnCreate", operation, "Plan");
        }
        const Plan& made = serving(object);
        check_device(context, made);
        check_left_out(std::span(object.optional).first(object.optional_count), optional);
        execute(made, scalars, arguments, context);
      },
      function);
}

const Tensor& tensor_of(kilnTensorDescriptor_t descriptor, const char* name) {
  return checked(descriptor, name).tensor;
}
const Tensor& tensor_of(kilnFilterDescriptor_t descriptor, const char* name) {
  return checked(descriptor, name).tensor;
}
const Tensor* optional_tensor(kilnTensorDescriptor_t descriptor, const char* name) {
  return descriptor == nullptr ? nullptr : &checked(descriptor, name).tensor;
}

}  // namespace kiln::api
