// All environment variables that the library reads. No other file reads any.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// Whether the process has no more privileges than its caller. A set-user-ID program has more, and
// its caller's environment must not decide which code it runs.
bool has_callers_privileges();

// A variable's value; "" if it is not set, or if the process has more than its caller's privileges.
std::string environment(const char* name);

std::string temporary_directory();  // TMPDIR, else /tmp

// The library's own variables, read once per process.
struct Config {
  std::string log_level;  // KILN_LOG, off, error, warn, info, debug or trace; default warn
  std::string log_file;   // KILN_LOG_FILE; empty: stderr
  std::string
      cache_dir;  // KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; empty: none
  std::string cache_mode;      // KILN_CACHE: on, readonly, strict or off; default on
  std::string cache_max_size;  // KILN_CACHE_MAX_SIZE: "4G"; empty: the default
  std::string bundle_path;     // KILN_BUNDLE_PATH: files separated by ':'
  std::string record_file;     // KILN_RECORD: file to which each new plan is written; empty: none
  int compile_threads = 1;     // KILN_COMPILE_THREADS, 1 to 1024; default one per CPU
  int compile_wait = 30;       // KILN_COMPILE_WAIT, seconds
  int loaded_kernels = 4096;   // KILN_LOADED_KERNELS: kept loaded for plans to come, at least 1
  std::string nvrtc_path;      // KILN_NVRTC: the libnvrtc file to use; empty: search
  std::string host_cxx;  // KILN_HOST_CXX: the host device's C++ compiler; empty: the one built with
  // KILN_HOST_OPTIMIZATION: the level that the host device's kernels are compiled with, 0, 1, 2, 3
  // or g; default 1. For tests, whose kernels run once.
  std::string host_optimization = "1";
  // KILN_KERNEL_SOURCE_DIR: kernel files there replace the embedded ones; empty: none
  std::string kernel_source_dir;
  std::string dump_dir;    // KILN_DUMP_DIR: gets source, PTX and machine code; empty: none
  bool line_info = false;  // KILN_LINEINFO=1: kernels have line information
  // One sentence for each variable with an invalid value; the log begins with them.
  std::vector<std::string> complaints;
};

const Config& config();

}  // namespace kiln
