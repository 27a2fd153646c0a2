// Which candidates measurements found to be fastest (`kiln tune`): the file `tuning` in the folder
// of the user's kernel cache, and what bundles carry of it. Plans ask here before the cost model.
//
// A winner is a line of text, its fields separated by tabs: problem, device, kernel sources,
// engine, tile, parts, microseconds, and a checksum of all that. What counts is the whole key,
// problem and batch size, device and sources: a new release measures anew. A line that is damaged
// or of another make costs one warning and is passed over. The file appears whole, by rename, and
// writers merge theirs into it under a lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/choice.hpp"

namespace kiln {

struct TunedKernel {
  std::string problem;  // text_of(problem)
  std::string device;   // tuning_device()
  std::string sources;  // tuning_sources()
  Winner winner;
  double microseconds = 0;  // measured, of an execution

  std::string key() const { return problem + '\t' + device + '\t' + sources; }
};

// What of a device decides times, and a build machine knows of it as well: "sm_90a, 132
// multiprocessors, 232448 bytes".
std::string tuning_device(const DeviceDescription& device);
// This library's version and a hash of its kernels' text.
const std::string& tuning_sources();
TunedKernel tuned_kernel(const Problem& problem, const DeviceDescription& device,
                         const Winner& winner, double microseconds);

std::string tuning_line(const TunedKernel& kernel);  // without a newline
std::optional<TunedKernel> parse_tuning_line(const std::string& line);

std::string tuning_file();  // "" if there is no folder for it

// The user's own, else a bundle's, by this library's kernels. The file is read once a process, and
// again when it has changed, which is looked for once a second.
std::optional<TunedKernel> find_winner(const Problem& problem, const DeviceDescription& device);

// Merges them into the user's file. Throws EXECUTION_FAILED.
void remember_winners(const std::vector<TunedKernel>& winners);

// The winner's proposal, else the cost model's; of one engine alone, if named, a winner counts only
// if it is that engine's. Throws as choose().
Choice choose_tuned(const Problem& problem, const DeviceDescription& device,
                    const std::string& only, std::vector<EngineRefusal>& refusals);

}  // namespace kiln
