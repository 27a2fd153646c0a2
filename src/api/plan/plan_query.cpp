// Queries of a plan.
#include <cstring>

#include "api/objects.hpp"
#include "codegen/loops.hpp"
#include "codegen/source.hpp"
#include "plan/kernel_store.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::guarded;
using kiln::api::serving;

namespace {

void check_finalized(const kiln::Plan& plan) {
  if (!plan.finalized()) {
    kiln::fail(KILN_STATUS_NOT_INITIALIZED,
               "plan was never finalized; expected kilnFinalizePlan to have succeeded");
  }
}

// Workspace that a plan of the problem would take if it were granted the most that any uses.
std::size_t best_workspace(const kiln::Plan& plan, kiln::Grant grant) {
  grant.workspace = kiln::most_workspace;
  std::vector<kiln::EngineRefusal> refusals;
  return choose_tuned(plan.problem(), plan.device().description(), grant, refusals)
      .proposal.workspace;
}

const char* text_of(kilnPlanStruct& object, kilnPlanText_t which) {
  kiln::check_enumerator("which", which);
  if (which == KILN_PLAN_PROBLEM) {
    std::string line =
        plan_line(object.plan.problem(), object.plan.device().description(), object.options.grant);
    return object.problem_lines.lock()->insert(std::move(line)).first->c_str();
  }
  const kiln::Plan& plan = serving(object);
  if (which == KILN_PLAN_REFUSALS && !plan.refusals().empty()) return object.refusals.c_str();
  check_finalized(plan);
  const kiln::KernelImage& image = *plan.kernel().image;
  switch (which) {
    case KILN_PLAN_ENGINE: return plan.spec().engine.c_str();
    case KILN_PLAN_TILE: return plan.spec().tile.c_str();
    case KILN_PLAN_CONSTANTS:
      return (&plan == &object.plan ? object.constants_text : object.stand_in_constants_text)
          .get([&] { return kiln::print_constants(plan.spec()); })
          .c_str();
    case KILN_PLAN_SOURCE: return image.source.c_str();
    case KILN_PLAN_PTX: return image.ptx.c_str();
    case KILN_PLAN_COMPILE_LOG: return image.log.c_str();
    case KILN_PLAN_CACHE_KEY: return image.key.c_str();
    case KILN_PLAN_ARCHITECTURE: return image.arch.c_str();
    case KILN_PLAN_PROBLEM:
    case KILN_PLAN_REFUSALS: break;
  }
  return "";
}

}  // namespace

kilnStatus_t kilnGetPlanInfo(kilnPlan_t plan, kilnPlanInfo_t* info) {
  return guarded([&] {
    kilnPlanStruct& asked = checked(plan, "plan");
    const kiln::Plan& object = serving(asked);
    check_pointer(info, "info", "a kilnPlanInfo_t whose structSize is set");
    // A program compiled against an older header has a shorter struct: it gets the first fields.
    const std::size_t size = info->structSize;
    constexpr std::size_t least = offsetof(kilnPlanInfo_t, generateMs);
    if (size < least || size > sizeof(kilnPlanInfo_t)) {
      kiln::fail(KILN_STATUS_BAD_PARAM, "structSize is ", size,
                 "; expected sizeof(kilnPlanInfo_t), which to this library is ",
                 sizeof(kilnPlanInfo_t), ", or that of an older header");
    }
    check_finalized(object);

    const kiln::LaunchShape& shape = object.launch().shape;
    const kiln::Kernel& kernel = *object.kernel().kernel;
    kilnPlanInfo_t full{};
    full.structSize = size;
    full.origin = object.origin();
    full.generateMs = object.times().generate;
    full.lookupMs = object.times().lookup;
    full.compileMs = object.times().compile;
    full.loadMs = object.times().load;
    full.totalMs = object.finalize_milliseconds();
    full.workspaceBytes = object.workspace_bytes();
    full.alignment = object.alignment();
    full.blocks = object.launch().empty
                      ? 0
                      : static_cast<int64_t>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
    full.threadsPerBlock = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    full.sharedMemoryBytes = static_cast<int>(shape.shared_memory);
    full.registersPerThread = kernel.registers();
    full.localMemoryBytes = kernel.local_memory();
    full.steps = static_cast<int>(kiln::launch_count(object.steps().size(), object.loops()));
    if (size > offsetof(kilnPlanInfo_t, bestWorkspaceBytes))
      full.bestWorkspaceBytes = best_workspace(object, asked.options.grant);
    full.standIn = &object != &asked.plan;
    std::memcpy(info, &full, size);
  });
}

kilnStatus_t kilnGetPlanText(kilnPlan_t plan, kilnPlanText_t which, const char** text) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    check_pointer(text, "text", "where to store the text's address");
    *text = text_of(object, which);
  });
}

kilnStatus_t kilnGetPlanBinary(kilnPlan_t plan, const void** data, size_t* size) {
  return guarded([&] {
    const kiln::Plan& object = serving(checked(plan, "plan"));
    check_pointer(data, "data", "where to store the code's address");
    check_pointer(size, "size", "where to store the code's size");
    check_finalized(object);
    *data = object.kernel().image->binary.data();
    *size = object.kernel().image->binary.size();
  });
}
