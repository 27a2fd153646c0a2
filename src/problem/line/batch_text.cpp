// Problem lines in a text of many lines, with comments, names and options.
#include <algorithm>

#include "problem/line/notation.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {

std::string unquoted(std::string_view name) {
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    name = name.substr(1, name.size() - 2);
  }
  return std::string(name);
}

std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted && (i == 0 || is_space(line[i - 1])))
      return trim_end(line.substr(0, i));
  }
  return line;
}

std::vector<NumberedLine> problem_lines(std::string_view text) {
  std::vector<NumberedLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim_end(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t start = 0;
    while (start < line.size() && is_space(line[start])) ++start;
    std::string_view content = line.substr(start);
    const bool object = content.starts_with('{');
    if (!object) content = without_comment(content);
    if (content.empty()) continue;
    if (content.starts_with("--") && content.find_first_of(" \t") == content.npos) continue;
    // Leading blanks are kept, so that columns in messages are right.
    const std::size_t length = start + content.size();
    lines.push_back(
        {number, std::string(content.starts_with("--") ? content : line.substr(0, length))});
  }
  return lines;
}

}  // namespace kiln
