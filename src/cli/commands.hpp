// The commands of the program, one file each. Adding a command declares its options and sets `run`
// to its body when the command line names it; the body returns the exit status: 0, or 1 if
// something it was asked to do failed. Exit status 2 is for what could not be asked.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kiln::cli {

using Run = std::function<int()>;

void add_run_commands(CLI::App& app, Run& run);  // conv, local, pool, act, softmax, norm, tensor
void add_bench_command(CLI::App& app, Run& run);
void add_info_command(CLI::App& app, Run& run);
void add_doctor_command(CLI::App& app, Run& run);
void add_inspect_command(CLI::App& app, Run& run);
void add_tune_command(CLI::App& app, Run& run);
void add_fit_command(CLI::App& app, Run& run);
void add_prewarm_command(CLI::App& app, Run& run);
void add_cache_command(CLI::App& app, Run& run);
void add_bundle_command(CLI::App& app, Run& run);

// Something wrong with the command line itself, in a sentence: exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The whole text of a file: a manifest, a device's description. Throws UsageError, also for more
// than any of them has.
inline constexpr std::size_t most_input_bytes = std::size_t{64} << 20;
std::string read_file(const std::string& path);

// Makes it the content of a file, which keeps its place and mode if it is there. "", or why not.
std::string write_file(const std::string& path, std::string_view content);

// The same of a list of problems. Throws UsageError for what is no text.
std::string read_problem_file(const std::string& path);

}  // namespace kiln::cli
