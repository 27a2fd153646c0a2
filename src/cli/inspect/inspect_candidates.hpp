// Which kernels a problem could have, and which engines refuse it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engines/choice.hpp"

namespace kiln::cli {

// An object of "candidates", the least estimate first, each with engine, tile, parts, estimate_us,
// chosen and only_by_name; and of "refusals", each with engine and reason.
nlohmann::ordered_json candidates_of(const Problem& problem, const DeviceDescription& device,
                                     std::size_t workspace, const Choice& choice);

// The same as a table.
std::string candidates_text(const nlohmann::ordered_json& candidates);

// "37 candidates of 4 engines; 9 engines refuse (--emit candidates)".
std::string candidates_summary(const nlohmann::ordered_json& candidates);

}  // namespace kiln::cli
