// The candidates that `kiln tune` measured as fastest, the winners. They are in the file `tuning`
// in the folder of the user's kernel cache, and in bundles. Plans use a winner instead of the cost
// model's choice.
//
// A winner is a line of fields separated by tabs: problem, device, hash of the kernel text, engine,
// tile, parts, microseconds, and a checksum of these. The key is the problem, with its batch size,
// and the device. The winner counts only while its kernel's text is the one that was measured:
// editing that kernel voids it, editing other kernels does not. Lines that are damaged or of
// another format are skipped with one warning. Writers merge their winners into the file under a
// lock and replace it by rename.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/choice.hpp"

namespace kiln {

struct TunedKernel {
  std::string problem;      // text_of(problem)
  std::string device;       // tuning_device()
  std::string kernel_text;  // tuned_text()
  Winner winner;
  double microseconds = 0;  // measured time of an execution

  std::string key() const { return problem + '\t' + device; }
};

// The properties of a device that decide times and are known without it: "sm_90a, 132
// multiprocessors, 232448 bytes", with "..., 4194304 bytes of workspace" if workspace is granted.
std::string tuning_device(const DeviceDescription& device, std::size_t workspace);
// A hash of the text of the proposal's kernels.
std::string tuned_text(const Proposal& proposal, kilnDeviceKind_t kind);
TunedKernel tuned_kernel(const Problem& problem, const DeviceDescription& device,
                         std::size_t workspace, const Option& winner, double microseconds);

std::string tuning_line(const TunedKernel& kernel);  // without a newline
std::optional<TunedKernel> parse_tuning_line(const std::string& line);

std::string tuning_file();  // its path; "" if there is no cache folder

// The winner in the user's file, else in a bundle, even if its kernel text has changed since. The
// process keeps the file's content and checks once a second whether the file has changed.
std::optional<TunedKernel> find_winner(const Problem& problem, const DeviceDescription& device,
                                       std::size_t workspace);

// Merges the winners into the user's file. Throws EXECUTION_FAILED if it cannot be written.
void remember_winners(const std::vector<TunedKernel>& winners);

// The winner's proposal if its kernel has the text that was measured, else the cost model's choice.
// If the grant names an engine, only a winner of that engine counts. Throws as choose().
Choice choose_tuned(const Problem& problem, const DeviceDescription& device, const Grant& grant,
                    std::vector<EngineRefusal>& refusals);

}  // namespace kiln
