// Whole files that a command line names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::cli {

// The whole text of a file: a manifest, a device's description. Throws UsageError, also for more
// than any of them has.
inline constexpr std::size_t most_input_bytes = std::size_t{64} << 20;
std::string read_file(const std::string& path);

// Makes it the content of a file, which keeps its place and mode if it is there. "", or why not.
std::string write_file(const std::string& path, std::string_view content);

// The same of a list of problems. Throws UsageError for what is no text.
std::string read_problem_file(const std::string& path);

}  // namespace kiln::cli
