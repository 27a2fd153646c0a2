#include "core/json.hpp"

#include "core/json_parser.hpp"

namespace kiln {

nlohmann::json parse_json(std::string_view text) { return parse_json_as<nlohmann::json>(text); }

}  // namespace kiln
