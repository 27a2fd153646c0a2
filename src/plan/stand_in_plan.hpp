// The plan that executes in place of another one while that one's kernel is being compiled.
#pragma once

#include <memory>
#include <string>

#include "plan/plan.hpp"

namespace kiln {

// A finalized stand-in for the same problem; null if there is none of the kind `allowed`, or if it
// cannot be made: `why_not` is then the reason, a clause. `chosen` is the plan's own choice:
// operands and workspace that the stand-in accepts are accepted by the chosen kernel, too.
std::unique_ptr<Plan> make_stand_in(const Plan& plan, const Grant& grant, const Choice& chosen,
                                    kilnStandIn_t allowed, std::string& why_not);

}  // namespace kiln
