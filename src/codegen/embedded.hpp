// The files of kernel_sources/, whose text embed.cmake puts into the program.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

struct EmbeddedFile {
  std::string_view path;  // relative to the embedded folder
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace kiln
