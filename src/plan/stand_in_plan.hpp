// The plan that executes while another one's kernel is being made.
#pragma once

#include <memory>

#include "plan/plan.hpp"

namespace kiln {

// Finalized, for the same problem; null where there is none that `allowed` allows, or it cannot be
// made. `chosen` is the plan's own choice: what the stand-in accepts, of operands and workspace,
// its kernel accepts as well.
std::unique_ptr<Plan> make_stand_in(const Plan& plan, const Terms& terms, const Choice& chosen,
                                    kilnStandIn_t allowed);

}  // namespace kiln
