// Parses JSON from files that anybody may have written: device descriptions, manifests, bundles'
// provenances. The library and the program parse JSON nowhere else.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln {

// Such files need 4 levels. The limit bounds the stack that copying or printing a value takes.
inline constexpr int most_json_levels = 64;

// The parsed value; a discarded one, which has no type, if the text is not JSON or is nested deeper
// than most_json_levels.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  bool too_deep = false;
  Json json = Json::parse(
      text,
      [&](int levels_around, typename Json::parse_event_t event, Json&) {
        const bool opens =
            event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
        too_deep = too_deep || (opens && levels_around >= most_json_levels);
        return !too_deep;
      },
      false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

// A value as text for a message, truncated if it is long.
template <class Json>
std::string text_of_json(const Json& json) {
  constexpr std::size_t most = 120;
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

}  // namespace kiln
