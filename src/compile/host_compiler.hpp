// The machine's C++ compiler, for the host device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "compile/compiler.hpp"

namespace kiln {

// The first of `candidates` (paths, or names to look for on PATH) that exists and prints its
// version. Null if there is none; `why` then names all of them. find_host_compiler() tries only
// KILN_HOST_CXX if that is set, else the compiler that built the library, c++, g++ and clang++.
std::shared_ptr<const Compiler> find_host_compiler_among(std::span<const std::string> candidates,
                                                         std::string& why);

}  // namespace kiln
