// kiln: operations from the command line, generated kernels to look at, and the kernel cache.
#include <algorithm>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/printable.hpp"
#include "cli/usage.hpp"
#include "cli/version.hpp"
#include "core/error.hpp"
#include "kiln/kiln.h"

namespace kiln::cli {

namespace {

int complain(const std::string& sentence, int status) {
  std::cout.flush();
  std::cerr << "kiln: " << printable_lines(sentence) << '\n';
  return status;
}

int run_program(int argc, char** argv) {
  CLI::App app("Deep-learning primitives whose GPU kernels are generated for exactly the problem.");
  app.name("kiln");
  app.set_version_flag("--version", version_line(),
                       "Print version, commit and CUDA toolkit, and exit");
  app.set_help_all_flag("--help-all", "Print the help of every command and exit");
  app.require_subcommand(0, 1);
  Run run;
  add_run_commands(app, run);
  add_bench_command(app, run);
  add_info_command(app, run);
  add_doctor_command(app, run);
  add_inspect_command(app, run);
  add_tune_command(app, run);
  add_fit_command(app, run);
  add_prewarm_command(app, run);
  add_cache_command(app, run);
  add_bundle_command(app, run);
  std::vector<std::string> words(argv + 1, argv + argc);
  // `kiln help` and `kiln help conv`, as they are asked for elsewhere.
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return complain(usage_sentence(app, error), 2);
  }
  if (!run) {
    throw UsageError(
        "no command; expected conv, local, pool, act, softmax, norm, tensor, bench, tune, fit, "
        "info, doctor, inspect, prewarm, cache or bundle; see kiln --help");
  }
  return run();
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  using kiln::cli::complain;
  try {
    return kiln::cli::run_program(argc, argv);
  } catch (const kiln::cli::UsageError& error) {
    return complain(error.what(), 2);
  } catch (const kiln::Error& error) {
    const bool asked_wrongly =
        error.status() == KILN_STATUS_BAD_PARAM || error.status() == KILN_STATUS_NO_DEVICE;
    return complain(error.what(), asked_wrongly ? 2 : 1);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", 1);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}
