// Bundles as the program makes and reads them: what is packed, and the provenance inside.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cache/bundle/bundle.hpp"
#include "codegen/kernel_spec.hpp"

namespace kiln::cli {

struct PackedKernel {
  KernelSpec kernel;
  kilnDeviceKind_t kind;
  std::string arch, label;
};

// Takes every kernel from the layers of the cache, compiling again what was evicted meanwhile, and
// packs them in the order of their keys: the same kernels give the same bytes. `problems`: the
// manifest, as the provenance keeps it; `winners`: what they were chosen by, if that was tuned.
// Throws EXECUTION_FAILED.
void write_bundle(const std::string& path, const std::vector<PackedKernel>& kernels,
                  const std::vector<std::string>& problems, const std::set<std::string>& winners);

// What the provenance says, with the fields
//   library     "0.2.0"
//   compilers   exact builds
//   kernels     key -> "sm_90a conv ..."
//   manifest    problems, "sm_90a conv ..."
//   tuning      winners, lines as plan/tuning.hpp has them; missing if there are none
nlohmann::ordered_json make_provenance(const std::vector<std::string>& compilers,
                                       const nlohmann::ordered_json& kernels,
                                       const std::vector<std::string>& problems,
                                       const std::set<std::string>& winners);

std::string text_of_provenance(const nlohmann::ordered_json& provenance);

// Throws EXECUTION_FAILED with why it is no bundle.
std::unique_ptr<const cache::Bundle> open_bundle(const std::string& path);
// An object, empty if the bundle's provenance is damaged or of another make. Its texts are whatever
// the bundle's maker wrote: printable() is for those that are printed.
nlohmann::ordered_json provenance_of(const cache::Bundle& bundle);
// What a key's kernel was made for, "" if that is not known.
std::string label_of(const nlohmann::ordered_json& provenance, const std::string& key);

}  // namespace kiln::cli
