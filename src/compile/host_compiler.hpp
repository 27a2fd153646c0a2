// The machine's C++ compiler, for the host device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "compile/compiler.hpp"

namespace kiln {

// The first of `candidates` (paths, or names to look for on PATH) that is there and says what it
// is. Null where there is none; `why` then names them all. find_host_compiler() looks for
// KILN_HOST_CXX alone if that is set, else for the compiler that built the library, c++, g++ and
// clang++.
std::shared_ptr<const Compiler> find_host_compiler_among(std::span<const std::string> candidates,
                                                         std::string& why);

}  // namespace kiln
