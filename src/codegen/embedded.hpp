// The text of kernel_sources/, put into the library by embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

struct EmbeddedFile {
  std::string_view path;  // below kernel_sources/
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace kiln
