// Versions, status names, and the calling thread's last message.
#include <exception>
#include <new>
#include <string>

#include "api/api.hpp"

namespace kiln::api {

namespace {

struct LastMessage {
  std::string owned;
  const char* text = "";  // owned's, or a literal where there was no memory for a copy
};

thread_local LastMessage last_message;

void remember(const char* text) noexcept {
  try {
    last_message.owned = text;
    last_message.text = last_message.owned.c_str();
  } catch (...) {
    last_message.text = "no host memory for the error's message";
  }
}

}  // namespace

kilnStatus_t remember_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    remember(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    last_message.text = "host memory is exhausted; expected room for a small object";
    return KILN_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    remember(error.what());
    return KILN_STATUS_INTERNAL_ERROR;
  } catch (...) {
    last_message.text = "an exception of unknown type reached the C API";
    return KILN_STATUS_INTERNAL_ERROR;
  }
}

}  // namespace kiln::api

int kilnGetVersion(void) { return KILN_VERSION; }

kilnStatus_t kilnCheckVersion(int header_version) {
  return kiln::api::guarded([&] {
    // The major version alone counts once it is above 0, until then the minor one as well.
    constexpr int unit = KILN_VERSION_MAJOR > 0 ? 10000 : 100;
    if (header_version / unit != KILN_VERSION / unit) {
      kiln::fail(KILN_STATUS_VERSION_MISMATCH, "header_version is ", header_version,
                 "; expected that of a header this library serves, such as its own ", KILN_VERSION);
    }
  });
}

const char* kilnGetErrorString(kilnStatus_t status) {
  switch (status) {
    case KILN_STATUS_SUCCESS: return "KILN_STATUS_SUCCESS";
    case KILN_STATUS_BAD_PARAM: return "KILN_STATUS_BAD_PARAM";
    case KILN_STATUS_NOT_INITIALIZED: return "KILN_STATUS_NOT_INITIALIZED";
    case KILN_STATUS_NOT_SUPPORTED: return "KILN_STATUS_NOT_SUPPORTED";
    case KILN_STATUS_NO_DEVICE: return "KILN_STATUS_NO_DEVICE";
    case KILN_STATUS_NO_COMPILER: return "KILN_STATUS_NO_COMPILER";
    case KILN_STATUS_COMPILE_FAILED: return "KILN_STATUS_COMPILE_FAILED";
    case KILN_STATUS_EXECUTION_FAILED: return "KILN_STATUS_EXECUTION_FAILED";
    case KILN_STATUS_ALLOC_FAILED: return "KILN_STATUS_ALLOC_FAILED";
    case KILN_STATUS_VERSION_MISMATCH: return "KILN_STATUS_VERSION_MISMATCH";
    case KILN_STATUS_INTERNAL_ERROR: return "KILN_STATUS_INTERNAL_ERROR";
    case KILN_STATUS_NOT_CACHED: return "KILN_STATUS_NOT_CACHED";
  }
  return "an unknown status";
}

const char* kilnGetLastErrorMessage(void) { return kiln::api::last_message.text; }
