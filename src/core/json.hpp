// Parses JSON from files that anybody may have written: device descriptions, manifests, bundles'
// provenances. The library and the program parse JSON nowhere else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace kiln {

// Such files need 4 levels. The limit bounds the stack that copying or printing a value takes.
inline constexpr int most_json_levels = 64;

// The parsed value; a discarded one, which has no type, if the text is not JSON or is nested deeper
// than most_json_levels.
nlohmann::json parse_json(std::string_view text);

}  // namespace kiln
