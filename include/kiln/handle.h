/* A handle: a device and a stream of it. */
#ifndef KILN_HANDLE_H
#define KILN_HANDLE_H

#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KILN_ENUM_BASE {
  KILN_DEVICE_CUDA = 1200, /* an NVIDIA GPU: its primary context, through the driver API */
  KILN_DEVICE_HOST = 1201  /* the same kernels, compiled by the C++ compiler and run on the CPU: for
                           tests, sanitizers and debuggers, not for speed */
} kilnDeviceKind_t;

/* A handle for device `ordinal` of `kind` (the host device has ordinal 0 alone). On a CUDA device
 * it retains the primary context, so buffers of the runtime API and of the frameworks serve.
 * Errors: BAD_PARAM (null handle, unknown kind, ordinal out of range), NO_DEVICE. */
KILN_API kilnStatus_t kilnCreate(kilnHandle_t* handle, kilnDeviceKind_t kind, int ordinal);

/* Null is allowed and ignored. Plans outlive the handle they were made with; the stream and the
 * workspace are the caller's, before and after. Errors: BAD_PARAM (no handle). */
KILN_API kilnStatus_t kilnDestroy(kilnHandle_t handle);

/* The CUstream (cudaStream_t) that executions with this handle go to; null, the default, is the
 * legacy default stream. It must belong to the primary context of the handle's device. The host
 * device has no streams and runs every execution at once. Errors: BAD_PARAM (null handle; null
 * output). */
KILN_API kilnStatus_t kilnSetStream(kilnHandle_t handle, void* stream);
KILN_API kilnStatus_t kilnGetStream(kilnHandle_t handle, void** stream);

/* Lends `bytes` of device memory at `workspace`, a multiple of 256, to the executions with this
 * handle; null and 0, the default, take it back. Only plans that were granted workspace before they
 * were finalized (kilnSetPlanWorkspaceLimit) touch it, and each may overwrite all of it, as
 * kilnTunePlan may: so executions on two streams need two handles with a workspace each. It must
 * stay valid until the last execution that could use it is done, in a CUDA graph as long as the
 * graph is. Errors: BAD_PARAM (null handle, an address that is no multiple of 256, null with bytes
 * > 0). */
KILN_API kilnStatus_t kilnSetWorkspace(kilnHandle_t handle, void* workspace, size_t bytes);
KILN_API kilnStatus_t kilnGetWorkspace(kilnHandle_t handle, void** workspace, size_t* bytes);

#ifdef __cplusplus
}
#endif

#endif /* KILN_HANDLE_H */
