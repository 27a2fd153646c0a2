// Which candidates measurements found to be fastest (`kiln tune`): the file `tuning` in the folder
// of the user's kernel cache, and what bundles carry of it. Plans ask here before the cost model.
//
// A winner is a line of text, its fields separated by tabs: problem, device, kernel text, engine,
// tile, parts, microseconds, and a checksum of all that. Problem with batch size and device are its
// key. The hash of the kernel's own text says whether the winner is still what was measured: an
// edit of another kernel changes nothing, an edit of its own voids it. A line that is damaged
// or of another make costs one warning and is passed over. The file appears whole, by rename, and
// writers merge theirs into it under a lock.
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
  double microseconds = 0;  // measured, of an execution

  std::string key() const { return problem + '\t' + device; }
};

// What of a device decides times, and a build machine knows of it as well: "sm_90a, 132
// multiprocessors, 232448 bytes".
// With a grant of workspace, also that: "..., 4194304 bytes of workspace".
std::string tuning_device(const DeviceDescription& device, std::size_t workspace);
// A hash of the text of the proposal's kernels.
std::string tuned_text(const Proposal& proposal, kilnDeviceKind_t kind);
TunedKernel tuned_kernel(const Problem& problem, const DeviceDescription& device,
                         std::size_t workspace, const Option& winner, double microseconds);

std::string tuning_line(const TunedKernel& kernel);  // without a newline
std::optional<TunedKernel> parse_tuning_line(const std::string& line);

std::string tuning_file();  // "" if there is no folder for it

// The user's own, else a bundle's, whatever kernel text it is of. The file is read once a process,
// and again when it has changed, which is looked for once a second.
std::optional<TunedKernel> find_winner(const Problem& problem, const DeviceDescription& device,
                                       std::size_t workspace);

// Merges them into the user's file. Throws EXECUTION_FAILED.
void remember_winners(const std::vector<TunedKernel>& winners);

// The winner's proposal if its kernel has the text that was measured, else the cost model's; of one
// engine alone, if named, a winner counts only if it is that engine's. Throws as choose().
Choice choose_tuned(const Problem& problem, const DeviceDescription& device, const Terms& terms,
                    std::vector<EngineRefusal>& refusals);

}  // namespace kiln
