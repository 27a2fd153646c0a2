// Where libnvrtc is, and of which release it is; neither loads it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// The libnvrtc to use: the file that KILN_NVRTC names; else one that this process has loaded; else
// the newest in the folders below. Empty where there is none, and `why` then says where was looked.
std::filesystem::path find_nvrtc_library(std::string& why);

// The folders that are searched, in this order:
//   1. where the dynamic loader looks on behalf of Kiln: LD_LIBRARY_PATH, and the run path of a
//      binary that lies where it was built, which names the toolkit it was built with;
//   2. lib64 and lib of CUDA_HOME and CUDA_PATH;
//   3. NVIDIA's wheels in the site-packages that Kiln itself lies in, of PYTHONPATH, VIRTUAL_ENV
//      and CONDA_PREFIX, and of the Python interpreter that this process is;
//   4. /usr/local/cuda, and the system's library folders;
//   5. NVIDIA's wheels in the site-packages of PATH's python3, of the user, and of the system.
std::vector<std::filesystem::path> nvrtc_folders();

// "13.0.88", as the library itself says in the banner that it puts at the head of PTX; "" if the
// file says nothing of the kind. Reads the whole file, some 100 MB: for people, not for keys.
std::string nvrtc_release(const std::filesystem::path& library);

}  // namespace kiln
