// Handles: a device, the stream that executions go to, and the workspace that they may use.
#include "api/objects.hpp"
#include "core/hexadecimal.hpp"

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

kilnStatus_t kilnSetWorkspace(kilnHandle_t handle, void* workspace, size_t bytes) {
  return guarded([&] {
    kilnContext& context = checked(handle, "handle");
    constexpr std::uintptr_t alignment = 256;
    const auto address = reinterpret_cast<std::uintptr_t>(workspace);
    if (address % alignment != 0)
      kiln::fail(KILN_STATUS_BAD_PARAM, "workspace is at ", kiln::hexadecimal(address),
                 "; expected a multiple of ", alignment);
    if (workspace == nullptr && bytes > 0)
      kiln::fail(KILN_STATUS_BAD_PARAM, "workspace is null and bytes is ", bytes,
                 "; expected the address of device memory, or 0 bytes");
    context.workspace = {workspace, workspace == nullptr ? 0 : bytes};
  });
}

kilnStatus_t kilnGetWorkspace(kilnHandle_t handle, void** workspace, size_t* bytes) {
  return guarded([&] {
    const kilnContext& context = checked(handle, "handle");
    check_pointer(workspace, "workspace", "where to store the workspace's address");
    check_pointer(bytes, "bytes", "where to store the workspace's size");
    *workspace = context.workspace.address;
    *bytes = context.workspace.bytes;
  });
}

kilnStatus_t kilnGetStream(kilnHandle_t handle, void** stream) {
  return guarded([&] {
    const kilnContext& context = checked(handle, "handle");
    check_pointer(stream, "stream", "where to store the stream");
    *stream = context.stream;
  });
}
