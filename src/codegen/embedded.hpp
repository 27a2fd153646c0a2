// Files that embed.cmake puts into the program: the text of kernel_sources/.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

struct EmbeddedFile {
  std::string_view path;  // below the folder that was embedded
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace kiln
