#include "core/config.hpp"

#include <sys/auxv.h>

#include <cstdlib>

#include "core/per_process.hpp"

namespace kiln {
namespace {

// XDG base directory specification: relative paths in these variables are to be ignored.
std::string default_cache_dir() {
  if (std::string dir = environment("KILN_CACHE_DIR"); !dir.empty()) return dir;
  if (std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/')
    return xdg + "/kiln";
  if (std::string home = environment("HOME"); !home.empty() && home[0] == '/')
    return home + "/.cache/kiln";
  return "";
}

Config read() {
  Config config;
  config.log_level = environment("KILN_LOG");
  if (config.log_level.empty()) config.log_level = "warn";
  config.log_file = environment("KILN_LOG_FILE");
  config.cache_dir = default_cache_dir();
  config.cache_mode = environment("KILN_CACHE");
  config.cache_max_size = environment("KILN_CACHE_MAX_SIZE");
  config.bundle_path = environment("KILN_BUNDLE_PATH");
  config.record_file = environment("KILN_RECORD");
  config.compile_threads = environment("KILN_COMPILE_THREADS");
  config.compile_wait = environment("KILN_COMPILE_WAIT");
  config.nvrtc_path = environment("KILN_NVRTC");
  config.host_cxx = environment("KILN_HOST_CXX");
  config.kernel_source_dir = environment("KILN_KERNEL_SOURCE_DIR");
  config.dump_dir = environment("KILN_DUMP_DIR");
  const std::string line_info = environment("KILN_LINEINFO");
  config.line_info = !line_info.empty() && line_info != "0";
  return config;
}

}  // namespace

bool has_callers_privileges() { return getauxval(AT_SECURE) == 0; }

std::string environment(const char* name) {
  const char* const value = secure_getenv(name);
  return value != nullptr ? value : "";
}

std::string temporary_directory() {
  std::string directory = environment("TMPDIR");
  return directory.empty() ? "/tmp" : directory;
}

const Config& config() {
  static constinit Once<Config> instance("environment");
  return instance.get(read);
}

}  // namespace kiln
