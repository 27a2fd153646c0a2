#include "compile/nvrtc_search.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#include "core/config.hpp"
#include "core/process/loader.hpp"
#include "core/split.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::array sonames{"libnvrtc.so.13", "libnvrtc.so.12"};

// An address inside this binary: the library, or the program that it is linked into.
constexpr char here = 0;

// The folders of a list separated by ':'.
std::vector<fs::path> folders_in(const std::string& list) {
  std::vector<fs::path> folders;
  for (const std::string_view folder : split(list, ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  return folders;
}

void append(std::vector<fs::path>& to, const std::vector<fs::path>& folders) {
  to.insert(to.end(), folders.begin(), folders.end());
}

// Whether a file name is that of libnvrtc. Some PyTorch wheels contain it under names such as
// libnvrtc-b51b459d.so.12. libnvrtc-builtins is another library.
bool is_nvrtc(const std::string& name) {
  const auto suffix = name.find(".so.");
  if (suffix == std::string::npos || name.starts_with("libnvrtc-builtins")) return false;
  const std::string stem = name.substr(0, suffix), version = name.substr(suffix) + ".";
  return (stem == "libnvrtc" || stem.starts_with("libnvrtc-")) &&
         (version.starts_with(".so.13.") || version.starts_with(".so.12."));
}

fs::path loaded_library() {
  fs::path found;
  const LoaderLock lock;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        const fs::path path = object->dlpi_name;
        std::error_code ignored;
        if (!is_nvrtc(path.filename().string()) || !fs::exists(path, ignored)) return 0;
        *static_cast<fs::path*>(result) = path;
        return 1;
      },
      &found);
  return found;
}

// The folders that the dynamic loader searches for this binary before its default folders:
// LD_LIBRARY_PATH, and the run path of binaries that were not installed.
std::vector<fs::path> loader_folders() {
  const LoaderLock lock;
  Dl_info unused{};
  link_map* self = nullptr;
  Dl_serinfo size{};
  if (dladdr1(&here, &unused, reinterpret_cast<void**>(&self), RTLD_DL_LINKMAP) == 0 || !self ||
      dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0)
    return {};
  const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(size.dls_size), std::free);
  if (!memory) return {};
  auto* const list = static_cast<Dl_serinfo*>(memory.get());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, list) != 0 || dlinfo(self, RTLD_DI_SERINFO, list) != 0)
    return {};
  std::vector<fs::path> folders;
  for (unsigned i = 0; i < list->dls_cnt; ++i)
    if ((list->dls_serpath[i].dls_flags & LA_SER_DEFAULT) == 0)
      folders.emplace_back(list->dls_serpath[i].dls_name);
  return folders;
}

// ---- Python -----------------------------------------------------------------------------------

// The site-packages folders below an environment's root. Debian calls the system's dist-packages.
std::vector<fs::path> sites_below(const fs::path& root) {
  std::vector<fs::path> sites;
  if (root.empty()) return sites;
  std::error_code error;
  for (fs::directory_iterator at(root / "lib", error), end; !error && at != end;
       at.increment(error)) {
    if (!at->path().filename().string().starts_with("python")) continue;
    sites.push_back(at->path() / "site-packages");
    sites.push_back(at->path() / "dist-packages");
  }
  std::sort(sites.rbegin(), sites.rend());  // the newest Python first
  return sites;
}

// The root of the environment that has `python` in its bin/. A virtual environment's python is a
// symbolic link to the system's, so links are not resolved.
fs::path root_of_python(const fs::path& python) {
  return python.is_absolute() ? python.parent_path().parent_path() : fs::path();
}

fs::path find_on_path(const std::string& program) {
  std::error_code ignored;
  for (const fs::path& folder : folders_in(environment("PATH")))
    if (fs::exists(folder / program, ignored)) return folder / program;
  return {};
}

// The path by which this process was started if it is a Python interpreter, else empty. A bare name
// stands for the first such program on PATH.
fs::path running_python() {
  std::error_code ignored;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string program;
  std::getline(file, program, '\0');
  if (!fs::path(program).filename().string().starts_with("python")) return {};
  return program.find('/') == std::string::npos ? find_on_path(program)
                                                : fs::absolute(program, ignored);
}

// The site-packages folder that Kiln is installed in.
std::vector<fs::path> site_around_kiln() {
  std::error_code ignored;
  for (fs::path at = fs::canonical(file_of(&here), ignored); at.has_relative_path();
       at = at.parent_path())
    if (at.filename() == "site-packages" || at.filename() == "dist-packages") return {at};
  return {};
}

// Appends the folders of NVIDIA's wheels: nvidia/cu13 for CUDA 13, one for each library before.
void append_wheels(std::vector<fs::path>& to, const std::vector<fs::path>& sites) {
  for (const fs::path& site : sites)
    append(to, {site / "nvidia/cu13/lib", site / "nvidia/cuda_nvrtc/lib"});
}

}  // namespace

std::vector<fs::path> nvrtc_folders() {
  std::vector<fs::path> folders = loader_folders();
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string root = environment(name); !root.empty())
      append(folders, {fs::path(root) / "lib64", fs::path(root) / "lib"});

  // Environments that were activated, or that this process runs in.
  const std::string conda = environment("CONDA_PREFIX");
  append_wheels(folders, site_around_kiln());
  append_wheels(folders, folders_in(environment("PYTHONPATH")));
  append_wheels(folders, sites_below(environment("VIRTUAL_ENV")));
  append_wheels(folders, sites_below(conda));
  if (!conda.empty()) folders.push_back(fs::path(conda) / "lib");
  append_wheels(folders, sites_below(root_of_python(running_python())));

  append(folders, folders_in("/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu:"
                             "/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib"));

  append_wheels(folders, sites_below(root_of_python(find_on_path("python3"))));
  if (const std::string home = environment("HOME"); !home.empty())
    append_wheels(folders, sites_below(home + "/.local"));
  append_wheels(folders, sites_below("/usr/local"));
  append_wheels(folders, sites_below("/usr"));
  return folders;
}

fs::path find_nvrtc_library(std::string& why) {
  std::error_code ignored;
  if (const std::string& given = config().nvrtc_path; !given.empty()) {
    if (fs::exists(given, ignored)) return given;
    why = cat("KILN_NVRTC is ", given, ", which does not exist");
    return {};
  }
  // A loaded copy is preferred: NVRTC finds its builtins by bare name, so two copies in one process
  // may get each other's, and the driver is known to accept the code of the loaded one.
  if (fs::path loaded = loaded_library(); !loaded.empty()) return loaded;
  const std::vector<fs::path> folders = nvrtc_folders();
  for (const char* const soname : sonames)
    for (const fs::path& folder : folders)
      if (fs::exists(folder / soname, ignored)) return folder / soname;
  why = cat("neither ", sonames[0], " nor ", sonames[1],
            " is loaded, or in LD_LIBRARY_PATH, CUDA_HOME, /usr/local/cuda, the system's library "
            "folders or the site-packages of Python; KILN_NVRTC can name the file");
  return {};
}

std::string nvrtc_release(const fs::path& library) {
  const int file = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  struct stat status {};
  const bool known = fstat(file, &status) == 0 && status.st_size > 0;
  const auto size = static_cast<std::size_t>(known ? status.st_size : 0);
  void* const memory = known ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return "";
  const std::string_view text(static_cast<const char*>(memory), size);
  constexpr std::string_view before = "Cuda compilation tools, release ";
  std::string release;
  if (const auto at = text.find(before); at != std::string_view::npos) {
    const std::string_view line = text.substr(at, std::min<std::size_t>(80, text.size() - at));
    if (const auto build = line.find(", V"); build != std::string_view::npos)
      for (const char digit : line.substr(build + 3)) {
        if (digit != '.' && (digit < '0' || digit > '9')) break;
        release += digit;
      }
  }
  munmap(memory, size);
  return release;
}

}  // namespace kiln
