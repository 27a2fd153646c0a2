// JSON as the program prints it, and reads it where the order of an object's fields is kept. The
// parser and the printer are compiled here alone: they take a compiler seconds.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kiln::cli {

// On one line, which it ends; and on several, with that many blanks a level and no end of the last.
// What is no UTF-8 in a text that came from elsewhere is replaced.
std::string json_line(const nlohmann::ordered_json& json);
std::string json_lines(const nlohmann::ordered_json& json, int blanks);

// A value as text for a message, truncated if it is long.
std::string text_of_json(const nlohmann::json& json);

// As parse_json.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace kiln::cli
