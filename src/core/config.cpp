#include "core/config.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>
#include <thread>

#include "core/process/per_process.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

// A variable's value if it is one of `words`, in upper or lower case; otherwise `otherwise`, with a
// complaint unless the variable is unset.
std::string word_of(const char* name, std::span<const char* const> words, const char* otherwise,
                    std::vector<std::string>& complaints) {
  const std::string text = environment(name);
  if (text.empty()) return otherwise;
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const char* word : words)
    if (lower == word) return lower;
  complaints.push_back(
      cat(name, " is ", text, "; expected ", alternatives(words), ". It is ", otherwise));
  return otherwise;
}

// A variable's value if it is a whole number from `least` to `most`; otherwise `otherwise`, with a
// complaint unless the variable is unset.
int number_of(const char* name, int least, int most, int otherwise,
              std::vector<std::string>& complaints) {
  const std::string text = environment(name);
  if (text.empty()) return otherwise;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  complaints.push_back(cat(name, " is ", text, "; expected a whole number from ", least, " to ",
                           most, ". It is ", otherwise));
  return otherwise;
}

// The default directory of the cache. By the XDG base directory specification, relative paths in
// these variables are ignored.
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
  constexpr const char* levels[] = {"off", "error", "warn", "info", "debug", "trace"};
  config.log_level = word_of("KILN_LOG", levels, "warn", config.complaints);
  config.log_file = environment("KILN_LOG_FILE");
  config.cache_dir = default_cache_dir();
  constexpr const char* modes[] = {"on", "readonly", "strict", "off"};
  config.cache_mode = word_of("KILN_CACHE", modes, "on", config.complaints);
  config.cache_max_size = environment("KILN_CACHE_MAX_SIZE");
  config.bundle_path = environment("KILN_BUNDLE_PATH");
  config.record_file = environment("KILN_RECORD");
  const int processors =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u));
  config.compile_threads =
      number_of("KILN_COMPILE_THREADS", 1, 1024, processors, config.complaints);
  config.compile_wait = number_of("KILN_COMPILE_WAIT", 0, 1'000'000, 30, config.complaints);
  config.loaded_kernels = number_of("KILN_LOADED_KERNELS", 1, 1'000'000, 4096, config.complaints);
  config.nvrtc_path = environment("KILN_NVRTC");
  config.host_cxx = environment("KILN_HOST_CXX");
  constexpr const char* optimizations[] = {"0", "1", "2", "3", "g"};
  config.host_optimization =
      word_of("KILN_HOST_OPTIMIZATION", optimizations, "1", config.complaints);
  config.kernel_source_dir = environment("KILN_KERNEL_SOURCE_DIR");
  config.dump_dir = environment("KILN_DUMP_DIR");
  constexpr const char* switches[] = {"0", "1"};
  config.line_info = word_of("KILN_LINEINFO", switches, "0", config.complaints) == "1";
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
