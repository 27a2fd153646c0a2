// What the C functions of normalizations share: which operands an execution has, and running it.
#pragma once

#include <string_view>

#include "api/normalization.hpp"
#include "api/operation.hpp"

namespace kiln::api::normalization {

inline constexpr double one = 1, none = 0;
inline constexpr float one_f32 = 1;

// The arguments of an execution, or the name of one that must be null.
class Operands {
 public:
  void add(const char* name, const void* address) { list_.add({name, address}); }
  void add_if(bool given, const char* name, const void* address) {
    if (given)
      add(name, address);
    else if (address != nullptr && stray_.name == nullptr)
      stray_ = {name, address};
  }
  // Throws BAD_PARAM.
  void check() const {
    if (stray_.name != nullptr)
      fail(KILN_STATUS_BAD_PARAM, stray_.name,
           " is given; expected null, as the descriptors leave it out");
  }
  const Arguments& list() const { return list_; }

 private:
  Arguments list_;
  Argument stray_;
};

inline NormalizationSpec spec_of(kilnNormalizationDescriptor_t descriptor) {
  return checked(descriptor, "normDesc").spec;
}

// What decides which operands there are. Of a plan that is none, nothing: executing refuses it.
struct Parts {
  bool affine = false, bias = false, running = false, residual = false;
  bool centered = true, of_batch = true;
};
inline Parts parts_of(kilnPlan_t plan) {
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value))
    if (const auto* problem = std::get_if<NormalizationProblem>(&plan->plan.problem()))
      return {problem->affine,   problem->bias,     problem->running,
              problem->residual, problem->centered, problem->over == NormalizationOver::batch};
  return {};
}
inline Parts parts_of(kilnNormalizationDescriptor_t descriptor, kilnTensorDescriptor_t residual) {
  if (descriptor == nullptr || !descriptor->mark.is(kilnNormalizationStruct::mark_value)) return {};
  const NormalizationSpec& spec = descriptor->spec;
  const bool of_batch = spec.statistics == KILN_NORMALIZATION_BATCH;
  return {spec.affine,
          spec.affine && spec.bias,
          spec.running && of_batch,
          residual != nullptr,
          spec.centered,
          of_batch};
}

// Executes with operands that were checked, in the function that was called.
inline kilnStatus_t execute(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                            const ScalarArguments& scalars, const Operands& operands,
                            const char* function = __builtin_FUNCTION()) noexcept {
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value) &&
      std::string_view(plan->operation) == operation) {
    const kilnStatus_t status = guarded([&] { operands.check(); }, function);
    if (status != KILN_STATUS_SUCCESS) return status;
  }
  return execute_plan(operation, handle, plan, scalars, operands.list(), {}, function);
}
template <class Make>
kilnStatus_t run(kilnHandle_t handle, const ScalarArguments& scalars, const Operands& operands,
                 const Make& make, const char* function = __builtin_FUNCTION()) noexcept {
  return run_at_once(
      handle, scalars, operands.list(),
      [&] {
        const NormalizationProblem problem = make();
        operands.check();
        return problem;
      },
      {}, {}, function);
}

// Of operations without alpha and beta; the moments' have no factor either.
inline ScalarArguments factor_alone(kilnDataType_t scalar_type, const void* factor) {
  return {.alpha = scalar_type == KILN_DATA_DOUBLE ? static_cast<const void*>(&one) : &one_f32,
          .beta = &none,
          .alpha2 = factor,
          .alpha2_name = "factor"};
}
inline kilnDataType_t scalar_type_of(kilnPlan_t plan) {
  const bool is_plan = plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value);
  return is_plan ? plan->plan.scalar_type() : KILN_DATA_FLOAT;
}

struct Statistics {
  const void* factor;
  void *running_mean, *running_variance, *mean, *deviation;
};
inline void add_statistics(Operands& operands, const Parts& parts, const Statistics& s) {
  operands.add_if(parts.running, "runningMean", s.running_mean);
  operands.add_if(parts.running, "runningVariance", s.running_variance);
  operands.add_if(parts.centered, "mean", s.mean);
  operands.add("inverseDeviation", s.deviation);
}

// Without running statistics nothing reads the factor, and it may be null.
inline const void* factor_of(const Parts& parts, const void* factor) {
  return parts.running ? factor : &none;
}

inline Operands training_operands(const Parts& parts, const void* x, const void* scale,
                                  const void* bias, const void* residual,
                                  const Statistics& statistics, void* y) {
  Operands out;
  out.add("x", x);
  out.add_if(parts.affine, "scale", scale);
  out.add_if(parts.bias, "bias", bias);
  out.add_if(parts.residual, "residual", residual);
  add_statistics(out, parts, statistics);
  out.add("y", y);
  return out;
}

struct Given {
  const void *x, *scale, *bias, *mean, *spread;
  const char* spread_name;
  const void* residual;
};
inline Operands given_operands(const Parts& parts, const Given& given) {
  Operands out;
  out.add("x", given.x);
  out.add_if(parts.affine, "scale", given.scale);
  out.add_if(parts.bias, "bias", given.bias);
  out.add_if(parts.centered, "mean", given.mean);
  out.add(given.spread_name, given.spread);
  out.add_if(parts.residual, "residual", given.residual);
  return out;
}
inline Operands forward_operands(const Parts& parts, const Given& given, void* y) {
  Operands out = given_operands(parts, given);
  out.add("y", y);
  return out;
}
inline Operands backward_operands(const Parts& parts, const Given& given, const void* dy,
                                  void* dscale, void* dbias, void* dresidual, void* dx) {
  Operands out = given_operands(parts, given);
  out.add("dy", dy);
  out.add_if(parts.of_batch || parts.affine, "dscale", dscale);
  out.add_if(parts.of_batch || parts.bias, "dbias", dbias);
  out.add_if(parts.residual, "dresidual", dresidual);
  out.add("dx", dx);
  return out;
}

inline Operands backward_apply_operands(const Parts& parts, const Given& given, const void* dy,
                                        const void* dscale, const void* dbias, void* dx) {
  Operands out;
  out.add("x", given.x);
  out.add_if(parts.affine, "scale", given.scale);
  out.add("mean", given.mean);
  out.add(given.spread_name, given.spread);
  out.add("dy", dy);
  out.add("dscale", dscale);
  out.add("dbias", dbias);
  out.add("dx", dx);
  return out;
}

inline Operands combine_operands(const Parts& parts, const void* of_parts,
                                 const Statistics& statistics, void* moments) {
  Operands out;
  out.add("partMoments", of_parts);
  add_statistics(out, parts, statistics);
  out.add("moments", moments);
  return out;
}

}  // namespace kiln::api::normalization
