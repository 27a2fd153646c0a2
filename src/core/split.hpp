// Splits a list at a separator.
#pragma once

#include <string_view>
#include <vector>

namespace kiln {

// split("a:b:", ':') is {"a", "b", ""}. std::getline is not used, because it ends early without an
// error if memory is exhausted.
inline std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = list.find(separator);
    parts.push_back(list.substr(0, end));
    if (end == std::string_view::npos) return parts;
    list.remove_prefix(end + 1);
  }
}

}  // namespace kiln
