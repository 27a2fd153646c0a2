// Plans of Kiln's that were granted workspace, which its immediate calls never use.
#pragma once

#include <functional>
#include <string>

#include "kiln/kiln.h"

namespace kiln::cudnn {

struct GrantedPlan {
  kilnPlan_t plan = nullptr;  // finalized; null where the table of plans is full
  std::size_t workspace = 0;  // bytes that its executions need
};

// The plan of a key, made by create() and granted the most workspace that any plan uses. Throws on
// failure; the next call then tries again.
GrantedPlan granted_plan(const std::string& key,
                         const std::function<kilnStatus_t(kilnPlan_t*)>& create);

// Lends a handle workspace at a multiple of 256, for a scope.
class LentWorkspace {
 public:
  LentWorkspace(kilnHandle_t handle, void* workspace, std::size_t bytes);
  LentWorkspace(const LentWorkspace&) = delete;
  LentWorkspace& operator=(const LentWorkspace&) = delete;
  ~LentWorkspace();

 private:
  kilnHandle_t handle_;
};

}  // namespace kiln::cudnn
