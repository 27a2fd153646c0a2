// The commands of the program, one file each. Adding a command declares its options and sets `run`
// to its body when the command line names it; the body returns the exit status: 0, or 1 if
// something it was asked to do failed. Exit status 2 is for what could not be asked.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>

namespace kiln::cli {

using Run = std::function<int()>;

void add_run_commands(CLI::App& app, Run& run);  // conv, pool, act, softmax, tensor
void add_bench_command(CLI::App& app, Run& run);
void add_info_command(CLI::App& app, Run& run);
void add_inspect_command(CLI::App& app, Run& run);
void add_tune_command(CLI::App& app, Run& run);
void add_prewarm_command(CLI::App& app, Run& run);
void add_cache_command(CLI::App& app, Run& run);
void add_bundle_command(CLI::App& app, Run& run);

// Something wrong with the command line itself, in a sentence: exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The whole text of a file. Throws UsageError.
std::string read_file(const std::string& path);

}  // namespace kiln::cli
