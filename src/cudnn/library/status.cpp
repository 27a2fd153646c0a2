#include "cudnn/library/status.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "cudnn/forward/real_library.hpp"
#include "cudnn/library/callback.hpp"
#include "cudnn/library/settings.hpp"
#include "kiln/base.hpp"

namespace kiln::cudnn {
namespace {

// A plain array without a destructor, so that messages work when memory is short.
constexpr std::size_t most_of_sentence = 1024;
[[gnu::tls_model("initial-exec")]] constinit thread_local char last_sentence[most_of_sentence] = "";

struct Name {
  cudnnStatus_t status;
  const char* text;
};
#define KILN_STATUS_NAME(suffix) \
  { CUDNN_STATUS_##suffix, "CUDNN_STATUS_" #suffix }
constexpr Name names[] = {
    KILN_STATUS_NAME(SUCCESS),
    KILN_STATUS_NAME(NOT_INITIALIZED),
    KILN_STATUS_NAME(SUBLIBRARY_VERSION_MISMATCH),
    KILN_STATUS_NAME(SERIALIZATION_VERSION_MISMATCH),
    KILN_STATUS_NAME(DEPRECATED),
    KILN_STATUS_NAME(LICENSE_ERROR),
    KILN_STATUS_NAME(RUNTIME_IN_PROGRESS),
    KILN_STATUS_NAME(RUNTIME_FP_OVERFLOW),
    KILN_STATUS_NAME(SUBLIBRARY_LOADING_FAILED),
    KILN_STATUS_NAME(BAD_PARAM),
    KILN_STATUS_NAME(INVALID_VALUE),
    KILN_STATUS_NAME(BAD_PARAM_NULL_POINTER),
    KILN_STATUS_NAME(BAD_PARAM_MISALIGNED_POINTER),
    KILN_STATUS_NAME(BAD_PARAM_NOT_FINALIZED),
    KILN_STATUS_NAME(BAD_PARAM_OUT_OF_BOUND),
    KILN_STATUS_NAME(BAD_PARAM_SIZE_INSUFFICIENT),
    KILN_STATUS_NAME(BAD_PARAM_STREAM_MISMATCH),
    KILN_STATUS_NAME(BAD_PARAM_SHAPE_MISMATCH),
    KILN_STATUS_NAME(BAD_PARAM_DUPLICATED_ENTRIES),
    KILN_STATUS_NAME(BAD_PARAM_ATTRIBUTE_TYPE),
    KILN_STATUS_NAME(BAD_PARAM_CUDA_GRAPH_MISMATCH),
    KILN_STATUS_NAME(BAD_PARAM_DESCRIPTOR_TYPE),
    KILN_STATUS_NAME(NOT_SUPPORTED),
    KILN_STATUS_NAME(NOT_SUPPORTED_GRAPH_PATTERN),
    KILN_STATUS_NAME(NOT_SUPPORTED_SHAPE),
    KILN_STATUS_NAME(NOT_SUPPORTED_DATA_TYPE),
    KILN_STATUS_NAME(NOT_SUPPORTED_LAYOUT),
    KILN_STATUS_NAME(NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER),
    KILN_STATUS_NAME(NOT_SUPPORTED_INCOMPATIBLE_CUDART),
    KILN_STATUS_NAME(NOT_SUPPORTED_ARCH_MISMATCH),
    KILN_STATUS_NAME(NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING),
    KILN_STATUS_NAME(NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE),
    KILN_STATUS_NAME(NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT),
    KILN_STATUS_NAME(NOT_SUPPORTED_PADDING),
    KILN_STATUS_NAME(NOT_SUPPORTED_BAD_LAUNCH_PARAM),
    KILN_STATUS_NAME(NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API),
    KILN_STATUS_NAME(NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE),
    KILN_STATUS_NAME(INTERNAL_ERROR),
    KILN_STATUS_NAME(INTERNAL_ERROR_COMPILATION_FAILED),
    KILN_STATUS_NAME(INTERNAL_ERROR_UNEXPECTED_VALUE),
    KILN_STATUS_NAME(INTERNAL_ERROR_HOST_ALLOCATION_FAILED),
    KILN_STATUS_NAME(INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED),
    KILN_STATUS_NAME(INTERNAL_ERROR_BAD_LAUNCH_PARAM),
    KILN_STATUS_NAME(INTERNAL_ERROR_TEXTURE_CREATION_FAILED),
    KILN_STATUS_NAME(EXECUTION_FAILED),
    KILN_STATUS_NAME(EXECUTION_FAILED_CUDA_DRIVER),
    KILN_STATUS_NAME(EXECUTION_FAILED_CUBLAS),
    KILN_STATUS_NAME(EXECUTION_FAILED_CUDART),
    KILN_STATUS_NAME(EXECUTION_FAILED_CURAND),
};

// The statuses of versions 1 to 8, indexed by number, and their counterparts in version 9.
constexpr Name before_9[] = {
    KILN_STATUS_NAME(SUCCESS),
    KILN_STATUS_NAME(NOT_INITIALIZED),
    KILN_STATUS_NAME(ALLOC_FAILED),
    KILN_STATUS_NAME(BAD_PARAM),
    KILN_STATUS_NAME(INTERNAL_ERROR),
    KILN_STATUS_NAME(INVALID_VALUE),
    KILN_STATUS_NAME(ARCH_MISMATCH),
    KILN_STATUS_NAME(MAPPING_ERROR),
    KILN_STATUS_NAME(EXECUTION_FAILED),
    KILN_STATUS_NAME(NOT_SUPPORTED),
    KILN_STATUS_NAME(LICENSE_ERROR),
    KILN_STATUS_NAME(RUNTIME_PREREQUISITE_MISSING),
    KILN_STATUS_NAME(RUNTIME_IN_PROGRESS),
    KILN_STATUS_NAME(RUNTIME_FP_OVERFLOW),
    KILN_STATUS_NAME(VERSION_MISMATCH),
};
#undef KILN_STATUS_NAME

const char* name_of(cudnnStatus_t status) {
  const auto number = static_cast<std::size_t>(status);
  if (number < std::size(before_9)) return before_9[number].text;
  for (const Name& name : names)
    if (name.status == status) return name.text;
  return "CUDNN_UNKNOWN_STATUS";
}

}  // namespace

cudnnStatus_t in_callers_version(cudnnStatus_t status) {
  if (!settings().statuses_of_8) return status;
  // The status itself, else the general one of its thousand (version 9 numbers details within it).
  constexpr int thousand = 1000;
  for (const int wanted : {int{status}, status / thousand * thousand})
    for (std::size_t number = 0; number < std::size(before_9); ++number)
      if (before_9[number].status == wanted) return static_cast<cudnnStatus_t>(number);
  return static_cast<cudnnStatus_t>(4);  // an internal error
}

cudnnStatus_t status_of(kilnStatus_t status) {
  const cudnnStatus_t in_9 = [&] {
    switch (status) {
      case KILN_STATUS_SUCCESS: return CUDNN_STATUS_SUCCESS;
      case KILN_STATUS_BAD_PARAM:
      case KILN_STATUS_NOT_INITIALIZED: return CUDNN_STATUS_BAD_PARAM;  // a descriptor never set
      case KILN_STATUS_NOT_SUPPORTED: return CUDNN_STATUS_NOT_SUPPORTED;
      case KILN_STATUS_NO_DEVICE: return CUDNN_STATUS_NOT_INITIALIZED;
      case KILN_STATUS_NO_COMPILER:
      case KILN_STATUS_NOT_CACHED: return CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING;
      case KILN_STATUS_COMPILE_FAILED: return CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
      case KILN_STATUS_EXECUTION_FAILED: return CUDNN_STATUS_EXECUTION_FAILED;
      case KILN_STATUS_ALLOC_FAILED: return CUDNN_STATUS_ALLOC_FAILED;
      case KILN_STATUS_VERSION_MISMATCH: return CUDNN_STATUS_VERSION_MISMATCH;
      case KILN_STATUS_INTERNAL_ERROR: break;
    }
    return CUDNN_STATUS_INTERNAL_ERROR;
  }();
  return in_callers_version(in_9);
}

cudnnStatus_t remember(const char* function, cudnnStatus_t status, const char* sentence) noexcept {
  // Two zero bytes terminate the text, as callbacks expect.
  const int length =
      std::snprintf(last_sentence, sizeof last_sentence - 1, "%s: %s", function, sentence);
  last_sentence[std::min<std::size_t>(length, sizeof last_sentence - 2) + 1] = 0;
  tell_callback(status, last_sentence);
  return status;
}

cudnnStatus_t told_by_real(const char* function, cudnnStatus_t status) noexcept {
  if (status == CUDNN_STATUS_SUCCESS) return status;
  char sentence[most_of_sentence] = "the library that KILN_CUDNN_FORWARD names refuses the call";
  if (auto* const last = real_function(cudnnGetLastErrorString, "cudnnGetLastErrorString"))
    last(sentence, sizeof sentence);
  return remember(function, in_callers_version(status), sentence);
}

Caught remember_exception(const char* function) noexcept {
  const auto kept = [&](kilnStatus_t status, const char* sentence) {
    return Caught{status, remember(function, status_of(status), sentence)};
  };
  try {
    throw;
  } catch (const Error& error) {
    return kept(error.status(), error.what());
  } catch (const Exception& error) {
    return kept(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return kept(KILN_STATUS_ALLOC_FAILED,
                "host memory is exhausted; expected room for a small object");
  } catch (const std::exception& error) {
    return kept(KILN_STATUS_INTERNAL_ERROR, error.what());
  } catch (...) {
    return kept(KILN_STATUS_INTERNAL_ERROR, "an exception of unknown type reached the C API");
  }
}

}  // namespace kiln::cudnn

const char* cudnnGetErrorString(cudnnStatus_t status) { return kiln::cudnn::name_of(status); }

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message != nullptr && max_size > 0)
    std::snprintf(message, max_size, "%s", kiln::cudnn::last_sentence);
}
