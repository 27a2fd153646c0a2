// Manifests: files that list the problems for which kernels are to be compiled, one a line, as
// problem/line/README.md explains them:
//
//   pool --dir bwd --dt f16 mb16ic64_ih112oh56_kh3_sh2_ph0
//   conv --arch h100 --workspace 16777216 --dt f16 mb1ic64ih56oc64kh3ph1
//   {"problem":"ic64ih56oc64kh3ph1","dt":["f32","f16"],"layout":"nhwc","batch":[1,8,32],
//    "architecture":["sm_80","sm_90a"],"only_engine":"direct"}                  (on one line)
#pragma once

#include <string>
#include <vector>

#include "cli/operation/read_line.hpp"
#include "device/device.hpp"

namespace kiln::cli {

// What the command line gives. Devices that it names are taken in place of those of the lines,
// which are then not looked up.
struct ManifestDefaults : LineDefaults {
  bool other_devices = false;
};

struct ManifestEntry {
  std::string place;  // "FILE:12"
  Problem problem;
  std::string name;                        // n"..." of the line
  std::vector<std::string> chips;          // words of --arch
  std::vector<DeviceDescription> devices;  // of these words; empty with other_devices
  Grant grant;
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

}  // namespace kiln::cli
