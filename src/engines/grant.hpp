// What a caller grants a choice, and what names the chosen candidate.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/kernel_spec.hpp"

namespace kiln {

struct Grant {
  std::string only_engine{};  // name of the only engine or rewrite to ask; "": all
  std::size_t workspace = 0;  // bytes of workspace that the caller grants
  friend bool operator==(const Grant&, const Grant&) = default;
};
// As flags of `kiln`, each followed by a space: "--engine direct --workspace 4096 ".
std::string flags_of(const Grant& grant);

// The names of a candidate, such as the fastest one of a measurement.
struct Winner {
  std::string engine, tile;
  int parts = 1;
  friend bool operator==(const Winner&, const Winner&) = default;
};
Winner name_of(const KernelSpec& kernel, const LaunchSpec& launch);
std::string describe(const Winner& winner);  // "direct one thread an element"; "..., 4 parts"

}  // namespace kiln
