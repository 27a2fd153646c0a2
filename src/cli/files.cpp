#include "cli/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <span>

#include "cache/store/files.hpp"
#include "cli/usage_error.hpp"
#include "core/text.hpp"

namespace kiln::cli {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  const auto refuse = [&](const std::string& why) {
    throw UsageError(cat("cannot read ", path, ": ", why));
  };
  if (!file.is_open()) refuse(cache::error_text(errno));
  // Read in steps: a pipe has no size, and the size that a file states may be wrong.
  constexpr std::size_t step = std::size_t{1} << 16;
  while (file) {
    if (text.size() > most_input_bytes)
      refuse(cat("it has more than the ", most_input_bytes >> 20, " MiB that are read"));
    const std::size_t size = text.size();
    text.resize(size + step);
    file.read(text.data() + size, step);
    text.resize(size + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) refuse(cache::error_text(errno));
  return text;
}

std::string read_problem_file(const std::string& path) {
  std::string text = read_file(path);
  if (text.starts_with("KILNBNDL"))
    throw UsageError(cat(path,
                         " is a bundle of kernels; expected a list of problems, one a line. "
                         "`kiln bundle ls ",
                         path, "` tells what is in it"));
  for (std::size_t i = 0; i < text.size(); ++i)
    if (const unsigned char c = static_cast<unsigned char>(text[i]);
        (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
      throw UsageError(cat(path, " has byte ", static_cast<int>(c), " at offset ", i,
                           "; expected text, a problem a line"));
  return text;
}

std::string write_file(const std::string& path, std::string_view content) {
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
  const int file = ::open(path.c_str(), flags, 0666);
  if (file < 0) return cache::error_text(errno);
  int error = cache::write_all(file, std::as_bytes(std::span(content)));
  if (::close(file) != 0 && error == 0) error = errno;
  return error == 0 ? "" : cache::error_text(error);
}

}  // namespace kiln::cli
