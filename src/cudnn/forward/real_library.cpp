#include "cudnn/forward/real_library.hpp"

#include <dlfcn.h>

#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"
#include "cudnn/library/settings.hpp"
#include "kiln/status.h"

namespace kiln::cudnn {
namespace {

// Null where none is wanted or it cannot be had, which is told in the log.
void* open() {
  const std::string& path = settings().forward;
  if (path.empty()) return nullptr;
  const auto complain = [&](const char* why) {
    log::error(cat("KILN_CUDNN_FORWARD is ", path, ", which is not used: ", why,
                   ". What Kiln does not serve is refused"));
    return nullptr;
  };
  // Local: its names must not take the place of Kiln's.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return complain(why != nullptr ? why : "it cannot be opened");
  }
  if (dlsym(library, "kilnCudnnMarker") != nullptr)
    return complain("it is Kiln's own; expected the library of cuDNN");
  if (dlsym(library, "cudnnCreate") == nullptr)
    return complain("it has no cudnnCreate; expected the library of cuDNN");
  return library;
}

// None while there is no memory to open it.
void* library() noexcept {
  static constinit Once<void*> instance("cuDNN library");
  try {
    return instance.get(open);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

bool forwards() noexcept { return library() != nullptr; }

void* real_symbol(const char* name) noexcept {
  void* const behind = library();
  return behind != nullptr ? dlsym(behind, name) : nullptr;
}

}  // namespace kiln::cudnn

int kilnCudnnMarker(void) { return kilnGetVersion(); }
