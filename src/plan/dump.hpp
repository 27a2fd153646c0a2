// KILN_DUMP_DIR: writes every kernel's source, PTX and machine code to files.
#pragma once

#include <string>

#include "codegen/kernel_spec.hpp"
#include "plan/kernel_store.hpp"

namespace kiln {

// The file name of a kernel's text, which compiler messages show: engine, tile, architecture and
// the beginning of the key, as in "implicit_gemm_fma-128x128x8-sm_90a-1f2e3d4c5b6a.cu". It depends
// only on the arguments.
std::string source_name(const KernelSpec& spec, const std::string& arch, const std::string& key);

// Writes the parts of the image that exist (source; once compiled, PTX and machine code) to
// KILN_DUMP_DIR, if that is set. Other processes see each file only complete. Never throws: a
// folder that cannot be written gives one warning.
void dump(const KernelImage& image);

}  // namespace kiln
