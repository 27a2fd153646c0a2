#include "core/config.hpp"

#include <cstdlib>

namespace kiln {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// XDG base directory specification: relative paths in these variables are to be ignored.
std::string default_cache_dir() {
  if (std::string dir = variable("KILN_CACHE_DIR"); !dir.empty()) return dir;
  if (std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/')
    return xdg + "/kiln";
  if (std::string home = variable("HOME"); !home.empty() && home[0] == '/')
    return home + "/.cache/kiln";
  return "";
}

Config read() {
  Config config;
  config.log_level = variable("KILN_LOG");
  if (config.log_level.empty()) config.log_level = "warn";
  config.log_file = variable("KILN_LOG_FILE");
  config.cache_dir = default_cache_dir();
  config.cache_mode = variable("KILN_CACHE");
  config.cache_max_size = variable("KILN_CACHE_MAX_SIZE");
  config.bundle_path = variable("KILN_BUNDLE_PATH");
  config.record_file = variable("KILN_RECORD");
  config.compile_threads = variable("KILN_COMPILE_THREADS");
  config.compile_wait = variable("KILN_COMPILE_WAIT");
  config.nvrtc_path = variable("KILN_NVRTC");
  config.host_cxx = variable("KILN_HOST_CXX");
  config.kernel_source_dir = variable("KILN_KERNEL_SOURCE_DIR");
  config.dump_dir = variable("KILN_DUMP_DIR");
  const std::string line_info = variable("KILN_LINEINFO");
  config.line_info = !line_info.empty() && line_info != "0";
  return config;
}

}  // namespace

const Config& config() {
  static const Config instance = read();
  return instance;
}

}  // namespace kiln
