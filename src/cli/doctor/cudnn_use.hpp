// The cuDNN functions that a program uses, read from its file.
#pragma once

#include <set>
#include <string>

#include "cli/doctor/elf_file.hpp"

namespace kiln::cli {

struct CudnnUse {
  // As the loader is asked for them: libcudnn.so.9. Empty also for what is opened while it runs.
  std::set<std::string> libraries;
  std::set<std::string> called;   // functions that the file calls and does not have
  std::set<std::string> carried;  // functions that it has itself, as what is linked statically does
  std::set<std::string>
      named;  // others that a text of it names, as a program does that looks them up
  bool linked_statically = false;
};

// Throws UsageError for a file that is no ELF file, or a damaged one.
CudnnUse cudnn_use_of(const std::string& path);

}  // namespace kiln::cli
