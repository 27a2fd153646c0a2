// The commands of the program, one file each. Adding a command declares its options and sets `run`
// to its body when the command line names it; the body returns the exit status: 0, or 1 if
// something it was asked to do failed. Exit status 2 is for what could not be asked.
#pragma once

#include <functional>

namespace kiln::cli {

class Command;  // cli/options.hpp

using Run = std::function<int()>;

void add_run_commands(Command app, Run& run);  // conv, local, pool, act, softmax, norm, tensor
void add_bench_command(Command app, Run& run);
void add_info_command(Command app, Run& run);
void add_doctor_command(Command app, Run& run);
void add_inspect_command(Command app, Run& run);
void add_tune_command(Command app, Run& run);
void add_fit_command(Command app, Run& run);
void add_prewarm_command(Command app, Run& run);
void add_cache_command(Command app, Run& run);
void add_bundle_command(Command app, Run& run);

}  // namespace kiln::cli
