#include "device/cuda/driver.hpp"

#include "core/error.hpp"
#include "core/process/loader.hpp"
#include "core/process/per_process.hpp"

// Two levels, so that a name which is itself a macro of cuda.h is expanded first.
#define KILN_TEXT_OF(name) #name
#define KILN_EXPANDED_TEXT_OF(name) KILN_TEXT_OF(name)

namespace kiln::cuda {
namespace {

std::string describe(const Driver& functions, CUresult result) {
  const char* name = nullptr;
  const char* words = nullptr;
  functions.cuGetErrorName(result, &name);
  functions.cuGetErrorString(result, &words);
  return cat(name ? name : "unknown error", " (", words ? words : "no description", ")");
}

// Opens the driver and finds its functions. Returns "", or the reason why it cannot be used.
std::string open(Driver& functions) {
  std::string missing;
  void* const library = open_library("libcuda.so.1", missing);
  if (!library) return "no CUDA driver: libcuda.so.1 is not installed";
#define KILN_RESOLVE(name)                                                 \
  functions.name = reinterpret_cast<decltype(functions.name)>(             \
      find_symbol(library, KILN_EXPANDED_TEXT_OF(name)));                  \
  if (!functions.name)                                                     \
    return "the CUDA driver is too old: it has no " KILN_EXPANDED_TEXT_OF( \
        name) " (11.8 or later is needed)";
  KILN_DRIVER_FUNCTIONS(KILN_RESOLVE)
#undef KILN_RESOLVE
#define KILN_RESOLVE(name)                                     \
  functions.name = reinterpret_cast<decltype(functions.name)>( \
      find_symbol(library, KILN_EXPANDED_TEXT_OF(name)));
  KILN_NEWER_DRIVER_FUNCTIONS(KILN_RESOLVE)
#undef KILN_RESOLVE
  const CUresult result = functions.cuInit(0);
  return result == CUDA_SUCCESS ? "" : cat("cuInit: ", describe(functions, result));
}

}  // namespace

const Driver* find_driver(std::string& why) {
  static constinit Once<Driver> found("CUDA driver");
  const Driver* const functions = found.get_if([&] {
    auto opened = std::make_unique<Driver>();
    why = open(*opened);
    return why.empty() ? std::move(opened) : nullptr;
  });
  if (functions != nullptr) why.clear();
  return functions;
}

const Driver& driver() {
  std::string why;
  const Driver* functions = find_driver(why);
  if (!functions) fail(KILN_STATUS_NO_DEVICE, why);
  return *functions;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const kilnStatus_t status =
      result == CUDA_ERROR_OUT_OF_MEMORY ? KILN_STATUS_ALLOC_FAILED : KILN_STATUS_EXECUTION_FAILED;
  fail(status, call, ": ", describe(driver(), result));
}

}  // namespace kiln::cuda
