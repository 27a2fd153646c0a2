// Versions, status names, and the calling thread's last message.
#include <exception>
#include <new>
#include <string>

#include "api/api.hpp"
#include "core/enumeration.hpp"

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
    constexpr int least = KILN_VERSION / unit * unit;
    if (header_version < least || header_version >= least + unit) {
      const auto dotted = [](int version) {
        return kiln::cat(version / 10000, ".", version / 100 % 100, ".", version % 100);
      };
      kiln::fail(KILN_STATUS_VERSION_MISMATCH, "header_version is ", header_version,
                 header_version < 0 ? "" : kiln::cat(" (Kiln ", dotted(header_version), ")"),
                 ": the program was compiled with a header of another Kiln than the library, which "
                 "is ",
                 dotted(KILN_VERSION), "; expected ", least, " to ", least + unit - 1);
    }
  });
}

const char* kilnGetErrorString(kilnStatus_t status) {
  const kiln::Enumerator* found = kiln::find_enumerator(kiln::enumeration_of(status), status);
  return found != nullptr ? found->identifier : "an unknown status";
}

const char* kilnGetLastErrorMessage(void) { return kiln::api::last_message.text; }
