// Names of engines: [wgrad_]algorithm[_layout]_instruction[_swap]. The instruction implies the
// architecture (fma: any, mma: sm_80 and later, wgmma: sm_90a); swap: pixels are operand A.
#pragma once

#include <string_view>

namespace kiln {

// The present name of an engine that a caller, a tuning file or a bundle names: names of version
// 0.1 are understood throughout 0.2. Any other text comes back as it is.
std::string_view engine_name(std::string_view given);

}  // namespace kiln
