// Texts out of files that somebody else may have written, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace kiln::cli {

// Control characters, which a terminal would obey, and bytes that are no UTF-8 become \x1b and the
// like; everything else stays. A text of several lines keeps its line ends and tabs.
std::string printable(std::string_view word);
std::string printable_lines(std::string_view text);

}  // namespace kiln::cli
