// KernelSpec -> one self-contained text: the constants, then the kernel. Nothing outside it matters.
#pragma once

#include <string>

#include "codegen/kernel_spec.hpp"

namespace kiln {

std::string generate_source(const KernelSpec& spec);

// "NAME = value" a line, for people and for plan queries.
std::string print_constants(const KernelSpec& spec);

// The embedded text of a file below kernel_sources/. Throws INTERNAL_ERROR if there is none.
std::string_view kernel_file(std::string_view path);

}  // namespace kiln
