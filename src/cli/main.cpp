// kiln: operations from the command line, generated kernels to look at, and the kernel cache.
#include <iostream>
#include <utility>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
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
  CommandLine line(
      "kiln", "Deep-learning primitives whose GPU kernels are generated for exactly the problem.",
      version_line());
  const Command app = line.program();
  app.at_most_one_command();
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
  if (!line.parse(std::move(words))) return 0;  // --help, --version
  if (!run) {
    throw UsageError(
        "no command; expected conv, local, matmul, pool, act, softmax, norm, tensor, bench, tune, "
        "fit, "
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
