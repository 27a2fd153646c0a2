// Bundles as the program writes and reads them: kernels, and the provenance, which says what they
// were made from.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
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

// Writes kernels into a bundle in the order of their keys, so that the same kernels give the same
// bytes. Takes each from the layers of the cache, and compiles again those that were evicted
// meanwhile. `problems` and `winners`: the provenance's "manifest" and "tuning". Throws
// EXECUTION_FAILED.
void write_bundle(const std::string& path, const std::vector<PackedKernel>& kernels,
                  const std::vector<std::string>& problems, const std::set<std::string>& winners);

// Makes a provenance, an object of these fields:
//   library     "0.2.0"
//   compilers   exact builds
//   kernels     key -> "conv --arch h100 ..."
//   manifest    problems, "conv --arch h100 ..."
//   tuning      winners, lines as plan/tuning.hpp has them; missing if there are none
nlohmann::ordered_json make_provenance(const std::vector<std::string>& compilers,
                                       const nlohmann::ordered_json& kernels,
                                       const std::vector<std::string>& problems,
                                       const std::set<std::string>& winners);

std::string text_of_provenance(const nlohmann::ordered_json& provenance);

// Throws UsageError if there is no such file.
void check_is_there(const std::string& path);
// Opens a bundle. Throws UsageError if there is no such file, and EXECUTION_FAILED that says why
// the file is no bundle.
std::unique_ptr<const cache::Bundle> open_bundle(const std::string& path);
// The bundle's provenance; an empty object if it is damaged or has another form. Its strings may be
// anything, so print them through printable().
nlohmann::ordered_json provenance_of(const cache::Bundle& bundle);
// The label that a provenance gives the kernel of a key, "conv --arch h100 ..."; "" if none.
std::string label_of(const nlohmann::ordered_json& provenance, const std::string& key);

}  // namespace kiln::cli
