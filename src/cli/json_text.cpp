#include "cli/json_text.hpp"

#include "core/json_parser.hpp"

namespace kiln::cli {

using nlohmann::ordered_json;

std::string json_line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string json_lines(const ordered_json& json, int blanks) {
  return json.dump(blanks, ' ', false, ordered_json::error_handler_t::replace);
}

std::string text_of_json(const nlohmann::json& json) {
  constexpr std::size_t most = 120;
  const std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

ordered_json parse_ordered_json(std::string_view text) { return parse_json_as<ordered_json>(text); }

}  // namespace kiln::cli
