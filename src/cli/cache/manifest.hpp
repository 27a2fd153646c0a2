// Manifests: files that list the problems for which kernels are to be compiled. Each line is a
// problem line, or a JSON object as KILN_RECORD and --json write them:
//
//   pool --dir bwd --dt f16 mb16ic64_ih112oh56_kh3_sh2_ph0
//   {"command":"conv","problem":"--dt f16 mb1ic64ih56oc64kh3ph1","architecture":"sm_90a"}
//   {"problem":"ic64ih56oc64kh3ph1","dt":["f32","f16"],"layout":"nhwc","batch":[1,8,32],
//    "architecture":["sm_80","sm_90a"],"only_engine":"direct"}                  (on one line)
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "engines/choice.hpp"
#include "problem/problem.hpp"

namespace kiln::cli {

// What the command line gives for lines that do not say it themselves. Without batches here, a line
// keeps its own.
struct ManifestDefaults {
  std::vector<std::string> types, layouts;
  std::vector<std::int64_t> batches;
  bool other_devices = false;  // the command line names devices, so those of lines are not read
};

struct ManifestEntry {
  std::string place;  // "FILE:12"
  Problem problem;
  std::vector<DeviceDescription> devices;  // that the line names
  Terms terms;
};

struct Manifest {
  std::vector<ManifestEntry> entries;
  std::vector<std::string> flaws;  // "FILE:12: the line: what is wrong with it"
};

// Throws UsageError if the file cannot be read.
Manifest read_manifest(const std::string& path, const ManifestDefaults& defaults);
// The same for the text of a file that messages call `name`.
Manifest parse_manifest(const std::string& name, const std::string& lines,
                        const ManifestDefaults& defaults);

// Replaces the batch size of a problem line of `command`, which may have flags before it.
std::string with_batch(const std::string& command, const std::string& line, std::int64_t batch);

}  // namespace kiln::cli
