// The error message for a command line that cannot be parsed.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

// What is wrong with a command line.
struct Misuse {
  std::string fault;                    // CLI11's message
  std::string command{};                // that the line got to: "kiln cache prune"
  std::vector<std::string> unknown{};   // words that it does not take
  std::vector<std::string> options{};   // that it has: "--days"
  std::vector<std::string> commands{};  // below it
};

// A sentence: what is wrong, with the name that may have been meant, and whose --help to ask.
std::string usage_sentence(const Misuse& misuse);

}  // namespace kiln::cli
