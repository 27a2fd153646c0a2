// Reads problem lines in full, as every command takes them: problem/line/README.md explains the
// notation. A line is words (command, flags, problem) or a JSON object of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/operation/operation.hpp"
#include "engines/choice.hpp"

namespace kiln::cli {

// What the command line gives for lines that do not say it themselves.
struct LineDefaults {
  std::vector<std::string> types{"f32"}, layouts{"nchw"};
  std::vector<std::int64_t> batches{};  // in place of the lines' own; empty: they keep those
  // The operation of lines without a command; its flags hold for these and for lines of its own
  // command. Null: conv, with its flags' defaults.
  const Operation* own = nullptr;
  Grant grant{};
};

// One problem with everything that decides its kernel.
struct ReadLine {
  Problem problem;
  std::string name;                // n"..." of the line
  Grant grant;                     // of the line, else those of the defaults; workspace is clipped
  std::vector<std::string> chips;  // words of --arch; empty: the line names none
};

// The problems of a line: a JSON object may list types, layouts and batches. Throws BAD_PARAM that
// names the word or field, and what was expected.
std::vector<ReadLine> read_line(const std::string& text, const LineDefaults& defaults);

// The problem of a line that has only one, and at most one chip.
ReadLine read_one(const std::string& text, const LineDefaults& defaults);

// Replaces the batch size of a problem of `command`.
std::string with_batch(const std::string& command, const std::string& problem, std::int64_t batch);

}  // namespace kiln::cli
