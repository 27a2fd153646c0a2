// The build id a linker wrote into a shared library: its exact identity, for two small reads.
#pragma once

#include <string>

namespace kiln {

// NT_GNU_BUILD_ID of a 64-bit ELF file in hex; "" if it carries none. Throws NO_COMPILER if the
// file cannot be read, for a library that cannot be read now may have one all the same.
std::string elf_build_id(const std::string& path);

}  // namespace kiln
