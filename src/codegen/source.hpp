// KernelSpec -> one self-contained text: the constants, then the kernel. Nothing outside it
// matters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"

namespace kiln {

// The text the compiler gets. `#include "..."` lines of kernel_sources/ are expanded in place, each
// file once; "target/..." becomes cuda/... or host/... by the kind of device. Throws BAD_PARAM for
// what KILN_KERNEL_SOURCE_DIR has wrong: a file that cannot be read, an include that leads out of
// the folder or nests too deep.
std::string generate_source(const KernelSpec& spec, kilnDeviceKind_t kind);

// The kernel files that go into that text, in order.
struct SourceFile {
  std::string path, text;  // path: below kernel_sources/
};
std::vector<SourceFile> source_files(const KernelSpec& spec, kilnDeviceKind_t kind);

// The same expansion for any text, for tests that bring kernels of their own.
std::string expand_includes(std::string_view text, kilnDeviceKind_t kind);

// "NAME = value" a line, for people and for plan queries; no macros.
std::string print_constants(const KernelSpec& spec);

}  // namespace kiln
