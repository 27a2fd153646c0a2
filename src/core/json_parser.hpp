// What parse_json does, for either type of JSON values; compiled once for each.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/json.hpp"

namespace kiln {

template <class Json>
Json parse_json_as(std::string_view text) {
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

}  // namespace kiln
