// Two texts compared line by line.
#pragma once

#include <string>

namespace kiln::cli {

struct LabelledText {
  std::string label, text;
};

// The differences as diff -u writes them; "" if there are none. Throws EXECUTION_FAILED if there is
// no diff program, or with its message.
std::string unified_diff(const LabelledText& before, const LabelledText& after);

}  // namespace kiln::cli
