// Handles: a device and the stream that executions go to.
#include "api/objects.hpp"

using kiln::api::check_at_least;
using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::destroy;
using kiln::api::guarded;

kilnStatus_t kilnCreate(kilnHandle_t* handle, kilnDeviceKind_t kind, int ordinal) {
  return guarded([&] {
    check_pointer(handle, "handle", "where to store the new handle");
    *handle = nullptr;
    kiln::check_enumerator("kind", kind);
    check_at_least(0, ordinal, "ordinal");
    *handle = new kilnContext(kiln::open_device(kind, ordinal));
  });
}

kilnStatus_t kilnDestroy(kilnHandle_t handle) { return destroy(handle, "handle"); }

kilnStatus_t kilnSetStream(kilnHandle_t handle, void* stream) {
  return guarded([&] { checked(handle, "handle").stream = stream; });
}

kilnStatus_t kilnGetStream(kilnHandle_t handle, void** stream) {
  return guarded([&] {
    const kilnContext& context = checked(handle, "handle");
    check_pointer(stream, "stream", "where to store the stream");
    *stream = context.stream;
  });
}
