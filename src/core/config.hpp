// Everything the environment can say, read once per process.
#pragma once

#include <string>

namespace kiln {

struct Config {
  std::string log_level;  // KILN_LOG: off, error, warn, info, debug, trace; default warn
  std::string log_file;   // KILN_LOG_FILE; empty: stderr
  std::string
      cache_dir;  // KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; empty: none
  std::string nvrtc_path;  // KILN_NVRTC: the libnvrtc file to use; empty: search
  std::string host_cxx;  // KILN_HOST_CXX: the host device's C++ compiler; empty: the one built with
};

const Config& config();

}  // namespace kiln
