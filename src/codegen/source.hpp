// Makes one self-contained text of a KernelSpec: the constants, then the kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"

namespace kiln {

// The text that the compiler gets. Lines `#include "..."` of kernel_sources/ are expanded in place,
// each file once; "target/..." becomes cuda/... or host/... by the kind of device. Throws BAD_PARAM
// for errors in KILN_KERNEL_SOURCE_DIR: a file that cannot be read, an include that leaves the
// folder or nests too deep.
std::string generate_source(const KernelSpec& spec, kilnDeviceKind_t kind);

// The kernel files that this text contains, in order.
struct SourceFile {
  std::string path, text;  // path: below kernel_sources/
};
std::vector<SourceFile> source_files(const KernelSpec& spec, kilnDeviceKind_t kind);

// Where a line of generate_source()'s text comes from: an edited file of KILN_KERNEL_SOURCE_DIR and
// the number of its line there. The path is "" for the library's own files and for constants.
struct SourceLine {
  std::string path;
  int number = 0;
};
std::vector<SourceLine> source_lines(const KernelSpec& spec, kilnDeviceKind_t kind);

// Expands any text in the same way, for tests with kernels of their own.
std::string expand_includes(std::string_view text, kilnDeviceKind_t kind);

// The constants as lines "NAME = value", for people and for plan queries; macros are left out.
std::string print_constants(const KernelSpec& spec);

}  // namespace kiln
