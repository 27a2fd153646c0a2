// KILN_DUMP_DIR: every kernel's source, PTX and machine code, as files to read.
#pragma once

#include <string>

#include "codegen/kernel_spec.hpp"
#include "plan/kernel_store.hpp"

namespace kiln {

// What people and compilers call a kernel's text, without a folder: the engine, the tile, the
// architecture, and enough of the key to tell it from the others, as in
// "implicit_gemm_fma-128x128x8-sm_90a-1f2e3d4c5b6a.cu". Follows from spec and key alone.
std::string source_name(const KernelSpec& spec, const std::string& arch, const std::string& key);

// Writes what there is of a kernel (its source; once compiled, its PTX and its machine code) to
// KILN_DUMP_DIR, if that is set. Each file appears whole. Never throws: a folder that cannot be
// written costs one warning.
void dump(const KernelImage& image);

}  // namespace kiln
