// Suites of cases to measure. Their layers are the files of layers/, which are embedded in the
// program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/choice.hpp"
#include "problem/problem.hpp"
#include "problem/scalars.hpp"

namespace kiln::cli::bench {

inline const std::vector<std::string> suite_names{"paper", "resnet50", "vgg16", "memory",
                                                  "latency"};
inline const std::vector<std::string> direction_names{"fwd", "dgrad", "wgrad"};
// Math modes of f32 convolutions. strict: FMA units only; default: no less accurate than these;
// tf32: one pass of TF32. Other types have only "default".
inline const std::vector<std::string> math_names{"strict", "default", "tf32"};

struct Case {
  std::string suite, layer, direction, math = "default", layout;
  Problem problem;
  Scalars scalars;
  bool latency = false;  // host time of planning and executing, instead of the device's time
  Grant grant{};         // of `kiln tune`, for plans granted as much
};

// What to measure. An empty list stands for the suite's own choice.
struct Selection {
  std::vector<std::string> suites;  // paper, latency and memory, unless there is a file of lines
  std::vector<std::string> layers;  // parts of layers' names
  std::vector<std::string> directions, types, layouts, maths;
  std::vector<std::int64_t> batches;
  std::string lines_from, lines;  // a file of convolutions and its text: the suite "batch"
};

// Throws BAD_PARAM naming the file and line of a problem that cannot be parsed.
std::vector<Case> cases_of(const Selection& selection);

std::string describe(const Case& item);  // one line, for --list

DataType type_of(const Case& item);       // of the result
std::int64_t batch_of(const Case& item);  // N

}  // namespace kiln::cli::bench
