// The build id that a linker wrote into a shared library. It identifies the exact build, and two
// small reads are enough to get it.
#pragma once

#include <string>

namespace kiln {

// NT_GNU_BUILD_ID of a 64-bit ELF file in hex; "" if it has none. Throws NO_COMPILER if the file
// cannot be read, because it may have a build id nonetheless.
std::string elf_build_id(const std::string& path);

}  // namespace kiln
