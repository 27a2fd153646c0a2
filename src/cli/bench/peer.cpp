#include "cli/bench/peer.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <sstream>

#include "core/config.hpp"
#include "core/error.hpp"

namespace kiln::cli::bench {
namespace {

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return paths;
}

// Paths where a library may be: the loader's own search first, then where toolkits and Python
// wheels put libraries.
std::vector<std::string> candidates(const std::string& name) {
  std::vector<std::string> paths{name};
  const auto add = [&](const std::string& pattern) {
    for (std::string& path : matches(cat(pattern, "/", name))) paths.push_back(std::move(path));
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string root = environment(variable); !root.empty()) add(cat(root, "/lib64"));
  add("/usr/local/cuda*/lib64");
  const std::string wheels = "lib/python3*/*-packages/nvidia/*/lib";
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = environment(variable); !root.empty()) add(cat(root, "/", wheels));
  for (const char* root : {"/usr/local", "/usr", "/opt/*", "/opt/*/envs/*"})
    add(cat(root, "/", wheels));
  if (const std::string home = environment("HOME"); !home.empty())
    add(cat(home, "/.local/", wheels));
  return paths;
}

}  // namespace

Contestant refusal(std::vector<std::string> roles, const std::string& reason) {
  Contestant contestant;
  contestant.roles = std::move(roles);
  contestant.refusal = reason;
  return contestant;
}

SharedLibrary::SharedLibrary(const std::string& path, const std::vector<std::string>& names,
                             const std::string& option) {
  std::string why;
  const auto open = [&](const std::string& file) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      why = why.empty() ? dlerror() : why;
      return false;
    }
    // Kiln's own library for cuDNN programs has the same file name as the real one.
    if (dlsym(handle_, "kilnCudnnMarker") != nullptr) {
      dlclose(handle_);
      handle_ = nullptr;
      why = why.empty() ? cat(file, " is Kiln's own") : why;
      return false;
    }
    path_ = file;
    return true;
  };
  if (!path.empty()) {
    if (open(path)) return;
    fail(KILN_STATUS_NO_DEVICE, option, " is ", path, ", which cannot be used: ", why);
  }
  for (const std::string& name : names)
    for (const std::string& file : candidates(name))
      if (open(file)) return;
  fail(KILN_STATUS_NO_DEVICE, "none of ", join(names, ", "),
       " is known to the loader or found among CUDA toolkits and Python packages (", why, "); ",
       option, " can name the file");
}

void* SharedLibrary::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr) fail(KILN_STATUS_NO_DEVICE, path_, " has no function ", name);
  return address;
}

}  // namespace kiln::cli::bench
