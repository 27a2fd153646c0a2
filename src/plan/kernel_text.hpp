// A kernel's text, its compiler and its key: everything that is known before it is compiled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "codegen/kernel_spec.hpp"
#include "compile/compiler.hpp"
#include "kiln/kiln.h"

namespace kiln {

struct KernelText {
  std::string source;
  std::vector<std::string> options;
  std::shared_ptr<const Compiler> compiler;  // null if there is none: the kernel has to be cached
  std::string why_not;
  cache::Key key;
};

// The key covers everything that decides the kernel's bytes: the source, which contains the
// engine's name, the constants and all included kernel files; the architecture, the options and the
// compiler build. Without a compiler, the key matches every compiler build.
KernelText kernel_text(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch);

}  // namespace kiln
