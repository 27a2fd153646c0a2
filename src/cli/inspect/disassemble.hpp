// Machine code as text, through the toolkit's own disassemblers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln::cli {

// The SASS of a cubin, by nvdisasm or cuobjdump from PATH or the toolkit's folder. Throws
// EXECUTION_FAILED if there is neither, or with their message.
std::string disassemble(std::span<const std::byte> cubin);

}  // namespace kiln::cli
