// A kernel's text, the compiler for it, and its key: what is known before any machine code is.
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
  std::shared_ptr<const Compiler> compiler;  // null: only the layers of the cache can serve
  std::string why_not;
  cache::Key key;
};

// The key holds everything that decides the kernel's bytes. The source holds the engine, the
// constants and every included kernel file, so nothing else of Kiln needs to be named. Where there
// is no compiler, the key is that of any compiler build.
KernelText kernel_text(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch);

}  // namespace kiln
