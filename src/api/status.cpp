// Versions, status names, and the calling thread's last message.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "api/api.hpp"
#include "core/enumeration.hpp"

namespace kiln::api {

namespace {

// Nothing here may fail: a thread without any memory left is told so, too. A thread-local object
// with a destructor would have to be registered, and one in the dynamic model to be allocated, when
// a thread first comes here, and the process ends where there is no memory for that. Hence the
// initial model, and no destructor: the text is freed by that of a thread-specific key.
struct LastMessage {
  char* owned;       // a copy, or null
  const char* text;  // owned, or a literal where there was no memory for a copy
};
[[gnu::tls_model("initial-exec")]] constinit thread_local LastMessage last_message{nullptr, ""};

pthread_key_t key;
bool has_key = false;  // where there is none, a thread's last message stays when it ends

__attribute__((constructor)) void make_key() {
  has_key = pthread_key_create(&key, [](void* owned) {
              last_message = {nullptr, ""};
              std::free(owned);
            }) == 0;
}

void remember_literal(const char* text) noexcept { last_message.text = text; }

void remember(const char* function, const char* text) noexcept {
  const std::size_t size = std::strlen(function) + std::strlen(text) + sizeof ": ";
  char* const copy = static_cast<char*>(std::malloc(size));
  if (copy == nullptr) return remember_literal("no host memory for the error's message");
  std::snprintf(copy, size, "%s: %s", function, text);
  std::free(last_message.owned);
  last_message = {copy, copy};
  if (has_key) pthread_setspecific(key, copy);
}

}  // namespace

kilnStatus_t remember_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    remember(function, error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    remember_literal("host memory is exhausted; expected room for a small object");
    return KILN_STATUS_ALLOC_FAILED;
  } catch (const std::exception& error) {
    remember(function, error.what());
    return KILN_STATUS_INTERNAL_ERROR;
  } catch (...) {
    remember_literal("an exception of unknown type reached the C API");
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
