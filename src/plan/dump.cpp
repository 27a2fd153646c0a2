#include "plan/dump.hpp"

#include <atomic>
#include <exception>
#include <filesystem>
#include <span>
#include <string_view>

#include "cache/store/files.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/log/log.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Writes a file that other processes see only complete, because they may share the folder.
void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  const int error = cache::publish_file(path.parent_path().string(), path.filename().string(),
                                        bytes, cache::Access::by_umask);
  if (error != 0)
    fail(KILN_STATUS_EXECUTION_FAILED, path.string(),
         " cannot be written: ", cache::error_text(error));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::string source_name(const KernelSpec& spec, const std::string& arch, const std::string& key) {
  constexpr std::size_t enough_digits = 12;
  const std::string tile = spec.tile.substr(0, spec.tile.find(','));
  std::string name = cat(spec.engine, "-", tile, "-", arch, "-", key.substr(0, enough_digits));
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  for (char& c : name)
    if (plain.find(c) == std::string_view::npos) c = '_';
  return name + (arch == "host" ? ".cpp" : ".cu");
}

void dump(const KernelImage& image) {
  const std::string& folder = config().dump_dir;
  if (folder.empty()) return;
  try {
    fs::create_directories(folder);
    fs::path path = fs::path(folder) / source_name(image.spec, image.arch, image.key);
    write_file(path, bytes_of(image.source));
    if (!image.ptx.empty()) write_file(path.replace_extension("ptx"), bytes_of(image.ptx));
    if (!image.binary.empty())
      write_file(path.replace_extension(image.arch == "host" ? "so" : "cubin"), image.binary);
  } catch (const std::exception& error) {
    static std::atomic<bool> warned{false};
    if (!warned.exchange(true)) log::warn(cat("KILN_DUMP_DIR is ", folder, ": ", error.what()));
  }
}

}  // namespace kiln
