// Suites of cases to measure. Layers are those of layers/, which are embedded in the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "problem/scalars.hpp"

namespace kiln::cli::bench {

inline const std::vector<std::string> suite_names{"paper", "resnet50", "vgg16", "memory",
                                                  "latency"};
inline const std::vector<std::string> direction_names{"fwd", "dgrad", "wgrad"};
// strict: FMA units alone; default: an error no worse than theirs; tf32: one pass of TF32. Of f32
// convolutions; the other types have one mode, "default".
inline const std::vector<std::string> math_names{"strict", "default", "tf32"};

struct Case {
  std::string suite, layer, direction, math = "default", layout;
  Problem problem;
  Scalars scalars;
  bool latency = false;  // host time of planning and executing, instead of the device's time
};

// An empty list stands for the suite's own choice.
struct Selection {
  std::vector<std::string> suites;  // paper, latency and memory, unless there is a file of lines
  std::vector<std::string> layers;  // part of a layer's name
  std::vector<std::string> directions, types, layouts, maths;
  std::vector<std::int64_t> batches;
  std::string lines_from, lines;  // a file of convolutions and its text: the suite "batch"
};

// Throws BAD_PARAM with the line's place in the sentence.
std::vector<Case> cases_of(const Selection& selection);

std::string describe(const Case& item);  // one line, for --list

DataType type_of(const Case& item);       // of the result
std::int64_t batch_of(const Case& item);  // N

}  // namespace kiln::cli::bench
