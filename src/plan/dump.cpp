#include "plan/dump.hpp"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/config.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Written beside its place, then renamed: several processes may share the folder.
void write_file(const fs::path& path, const void* bytes, std::size_t size) {
  static std::atomic<int> count{0};
  const fs::path unfinished = cat(path.string(), ".", getpid(), "-", count++);
  std::ofstream file(unfinished, std::ios::binary);
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  file.close();
  if (!file) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    fail(KILN_STATUS_EXECUTION_FAILED, path.string(), " cannot be written");
  }
  fs::rename(unfinished, path);
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
    write_file(path, image.source.data(), image.source.size());
    if (!image.ptx.empty())
      write_file(path.replace_extension("ptx"), image.ptx.data(), image.ptx.size());
    if (!image.binary.empty())
      write_file(path.replace_extension(image.arch == "host" ? "so" : "cubin"), image.binary.data(),
                 image.binary.size());
  } catch (const std::exception& error) {
    static std::atomic<bool> warned{false};
    if (!warned.exchange(true)) log::warn(cat("KILN_DUMP_DIR is ", folder, ": ", error.what()));
  }
}

}  // namespace kiln
