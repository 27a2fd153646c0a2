// Finds libnvrtc and its release without loading it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// The path of the libnvrtc to use: the file that KILN_NVRTC names, else one that this process has
// loaded, else the newest in nvrtc_folders(). Empty if there is none; `why` then lists the folders.
std::filesystem::path find_nvrtc_library(std::string& why);

// The folders that are searched, in this order:
//   1. where the dynamic loader looks for Kiln's libraries: LD_LIBRARY_PATH, and the run path of a
//      binary that was not installed, which names the toolkit that it was built with;
//   2. lib64 and lib of CUDA_HOME and CUDA_PATH;
//   3. NVIDIA's wheels in the site-packages that Kiln itself is in, of PYTHONPATH, VIRTUAL_ENV and
//      CONDA_PREFIX, and of the Python interpreter that this process runs;
//   4. /usr/local/cuda, and the system's library folders;
//   5. NVIDIA's wheels in the site-packages of PATH's python3, of the user, and of the system.
std::vector<std::filesystem::path> nvrtc_folders();

// The release, "13.0.88", from the banner in the file that NVRTC puts at the beginning of PTX; ""
// if there is none. It reads the whole file, some 100 MB, so it is used only in messages.
std::string nvrtc_release(const std::filesystem::path& library);

}  // namespace kiln
