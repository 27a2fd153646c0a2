// The cuDNN functions that a program uses, read from its file.
#pragma once

#include <set>
#include <string>

#include "cli/doctor/elf_file.hpp"

namespace kiln::cli {

struct CudnnUse {
  // cuDNN libraries that the file asks the loader for, "libcudnn.so.9"; not those that a program
  // opens while it runs (dlopen).
  std::set<std::string> libraries;
  std::set<std::string> called;   // functions that the file calls and does not have
  std::set<std::string> carried;  // functions that it defines, as one linked statically does
  // Other functions that it has a string of, as a program has that looks them up (dlsym).
  std::set<std::string> named;
  bool linked_statically = false;
};

// Throws UsageError for a file that is no ELF file, or a damaged one.
CudnnUse cudnn_use_of(const std::string& path);

}  // namespace kiln::cli
