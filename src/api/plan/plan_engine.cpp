// The engines of a plan's problem, and the caller's choice among them.
#include <algorithm>
#include <string_view>

#include "api/objects.hpp"
#include "engines/names.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::guarded;

namespace {

// They depend on the problem and the device alone, which no finalization changes.
const std::vector<kiln::EngineRefusal>& engines_of(kilnPlanStruct& object) {
  return object.engines.get(
      [&] { return kiln::ask_engines(object.plan.problem(), object.plan.device().description()); });
}

void check_engine(const std::vector<kiln::EngineRefusal>& engines, std::string_view name) {
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const auto& each) { return each.engine == name; });
  if (found == engines.end()) {
    std::string names;
    for (const kiln::EngineRefusal& each : engines)
      names += kiln::cat(names.empty() ? "" : ", ", each.engine);
    kiln::fail(KILN_STATUS_BAD_PARAM, "engine is ", name, "; expected null or one of ", names);
  }
  if (!found->reason.empty())
    kiln::fail(KILN_STATUS_NOT_SUPPORTED, "engine ", name,
               " does not take the plan's problem: ", found->reason);
}

}  // namespace

kilnStatus_t kilnGetPlanEngineCount(kilnPlan_t plan, int* count) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    check_pointer(count, "count", "where to store the number of engines");
    *count = static_cast<int>(engines_of(object).size());
  });
}

kilnStatus_t kilnGetPlanEngine(kilnPlan_t plan, int index, const char** name,
                               const char** refusal) {
  return guarded([&] {
    const std::vector<kiln::EngineRefusal>& engines = engines_of(checked(plan, "plan"));
    if (index < 0 || static_cast<std::size_t>(index) >= engines.size())
      kiln::fail(KILN_STATUS_BAD_PARAM, "index is ", index, "; expected 0 to ", engines.size() - 1);
    const kiln::EngineRefusal& engine = engines[static_cast<std::size_t>(index)];
    if (name != nullptr) *name = engine.engine.c_str();
    if (refusal != nullptr) *refusal = engine.reason.c_str();
  });
}

kilnStatus_t kilnSetPlanEngine(kilnPlan_t plan, const char* engine) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    kiln::api::check_open(object, "kilnSetPlanEngine");
    const std::string_view name = engine == nullptr ? "" : kiln::engine_name(engine);
    if (engine != nullptr) check_engine(engines_of(object), name);
    object.options.grant.only_engine = name;
  });
}
