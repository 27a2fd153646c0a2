#include "cudnn/forward/real_library.hpp"

#include "core/log/log.hpp"
#include "core/process/loader.hpp"
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
  const auto complain = [&](const std::string& reason) {
    log::error(cat("KILN_CUDNN_FORWARD is ", path, ", which is not used: ", reason,
                   ". What Kiln does not serve is refused"));
    return nullptr;
  };
  // RTLD_LOCAL, because its symbols must not replace Kiln's.
  std::string why;
  void* const library = open_library(path, why);
  if (library == nullptr) return complain(why);
  if (find_symbol(library, "kilnCudnnMarker") != nullptr)
    return complain("it is Kiln's own; expected the library of cuDNN");
  if (find_symbol(library, "cudnnCreate") == nullptr)
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
  return behind != nullptr ? find_symbol(behind, name) : nullptr;
}

}  // namespace kiln::cudnn

int kilnCudnnMarker(void) { return kilnGetVersion(); }
