// Two texts compared line by line.
#pragma once

#include <string>

namespace kiln::cli {

struct LabelledText {
  std::string label, text;
};

// What differs, as diff -u writes it; "" if nothing does. Throws EXECUTION_FAILED if there is no
// diff program, or in its words.
std::string unified_diff(const LabelledText& before, const LabelledText& after);

}  // namespace kiln::cli
