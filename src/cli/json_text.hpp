// JSON as the program prints it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kiln::cli {

// On one line; what is no UTF-8 in a text that came from elsewhere is replaced.
inline std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace kiln::cli
