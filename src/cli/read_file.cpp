#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/commands.hpp"
#include "core/text.hpp"

namespace kiln::cli {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.bad() || !file.is_open()) {
    throw UsageError(cat("cannot read ", path, ": ", std::strerror(errno)));
  }
  return text.str();
}

}  // namespace kiln::cli
