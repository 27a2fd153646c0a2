// The base of all plans of kiln.hpp.
#ifndef KILN_PLAN_HPP
#define KILN_PLAN_HPP

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/operands.hpp"

namespace kiln {
inline namespace cxx {

// Derived classes, one for each operation, construct and execute it.
class Plan : public Owner<kilnPlan_t, kilnDestroyPlan> {
 public:
  // The operation's engines, each with its refusal, which is "" if it takes the problem. The texts
  // live as long as the plan.
  struct Engine {
    std::string_view name, refusal;
  };
  std::vector<Engine> engines() const {
    int count = 0;
    check(kilnGetPlanEngineCount(get(), &count));
    std::vector<Engine> engines;
    for (int i = 0; i < count; ++i) {
      const char *name = nullptr, *refusal = nullptr;
      check(kilnGetPlanEngine(get(), i, &name, &refusal));
      engines.push_back({name, refusal});
    }
    return engines;
  }
  // Makes finalization take this engine; null: the library's choice. See kilnSetPlanEngine.
  void set_engine(const char* engine) { check(kilnSetPlanEngine(get(), engine)); }

  // Bytes of a handle's workspace that the plan may use. See kilnSetPlanWorkspaceLimit.
  void set_workspace_limit(std::size_t bytes) { check(kilnSetPlanWorkspaceLimit(get(), bytes)); }

  // What may execute the plan from start_finalize() on. See kilnSetPlanStandIn.
  void set_stand_in(kilnStandIn_t allowed) { check(kilnSetPlanStandIn(get(), allowed)); }

  void finalize() { check(kilnFinalizePlan(get())); }

  // Finalizes with the kernel that is fastest on these buffers. See kilnTunePlan.
  void tune(const Handle& handle, std::span<const void* const> operands, double budget_ms) {
    check(kilnTunePlan(handle.get(), get(), operands.data(), static_cast<int>(operands.size()),
                       budget_ms));
  }

  // In the background; see kilnStartFinalizePlan. poll() and wait() throw what finalization failed
  // with.
  void start_finalize() { check(kilnStartFinalizePlan(get())); }
  bool poll_finalize() {
    int done = 0;
    check(kilnPollFinalizePlan(get(), &done));
    return done != 0;
  }
  void wait_finalize() { check(kilnWaitFinalizePlan(get())); }
  bool cancel_finalize() {
    int cancelled = 0;
    check(kilnCancelFinalizePlan(get(), &cancelled));
    return cancelled != 0;
  }

  // The compute type, which is the scalars' type, too: KILN_DATA_FLOAT or KILN_DATA_DOUBLE.
  kilnDataType_t compute_type() const noexcept { return compute_type_; }

  kilnPlanInfo_t info() const {
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    check(kilnGetPlanInfo(get(), &info));
    return info;
  }
  // Both live as long as the plan.
  std::string_view text(kilnPlanText_t which) const {
    const char* text = nullptr;
    check(kilnGetPlanText(get(), which, &text));
    return text;
  }
  std::span<const std::byte> binary() const {
    const void* data = nullptr;
    std::size_t size = 0;
    check(kilnGetPlanBinary(get(), &data, &size));
    return {static_cast<const std::byte*>(data), size};
  }

 protected:
  // create(&plan) is the operation's kilnCreate...Plan; `tensors` are the descriptors that
  // determine the compute type.
  template <class Create, class... Tensors>
  explicit Plan(Create&& create, const Tensors&... tensors)
      : Owner(created(create)), compute_type_(detail::compute_type_of(tensors...)) {}

 private:
  kilnDataType_t compute_type_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_PLAN_HPP
