#include "cli/version.hpp"

#include <cuda.h>

#include "core/text.hpp"
#include "kiln/kiln.h"

namespace kiln::cli {

extern const char* const built_from_commit;  // written at build time by commit.cmake

std::string version() {
  return cat(KILN_VERSION_MAJOR, ".", KILN_VERSION_MINOR, ".", KILN_VERSION_PATCH);
}

std::string commit() { return built_from_commit; }

std::string toolkit() { return cat("CUDA ", CUDA_VERSION / 1000, ".", CUDA_VERSION % 1000 / 10); }

std::string version_line() {
  return cat("kiln ", version(), " (", commit().empty() ? "" : cat("commit ", commit(), ", "),
             "built with ", toolkit(), ")");
}

}  // namespace kiln::cli
