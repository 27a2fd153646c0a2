#include "cudnn/forward/real_library.hpp"

#include <dlfcn.h>

#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"
#include "cudnn/library/settings.hpp"
#include "kiln/status.h"

namespace kiln::cudnn {
namespace {

// Opens the real library. Null if KILN_CUDNN_FORWARD is not set, or if opening fails, which is
// logged.
void* open() {
  const std::string& path = settings().forward;
  if (path.empty()) return nullptr;
  const auto complain = [&](const char* why) {
    log::error(cat("KILN_CUDNN_FORWARD is ", path, ", which is not used: ", why,
                   ". What Kiln does not serve is refused"));
    return nullptr;
  };
  // RTLD_LOCAL, because its symbols must not replace Kiln's.
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

// The opened library; null also if memory is too short to open it.
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
