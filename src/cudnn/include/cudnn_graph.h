/* Handles, versions, messages, and (refused, unless forwarded) the graph API. */
#ifndef CUDNN_GRAPH_H
#define CUDNN_GRAPH_H

#include "cudnn_version.h"
#include "kiln_cudnn/backend.h"
#include "kiln_cudnn/runtime.h"
#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions and messages ----------------------------------------------------------------- */

size_t CUDNNWINAPI cudnnGetVersion(void);
size_t CUDNNWINAPI cudnnGetMaxDeviceVersion(void);

/* Returns 0: Kiln is not linked with the CUDA runtime. */
size_t CUDNNWINAPI cudnnGetCudartVersion(void);

/* Returns the name of a status. */
const char* CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status);

/* Copies the message of the calling thread's last failed call, cut to max_size bytes including the
 * terminating 0. */
void CUDNNWINAPI cudnnGetLastErrorString(char* message, size_t max_size);

cudnnStatus_t CUDNNWINAPI cudnnGetProperty(libraryPropertyType type, int* value);

typedef enum {
  CUDNN_ERRQUERY_RAWCODE = 0,
  CUDNN_ERRQUERY_NONBLOCKING = 1,
  CUDNN_ERRQUERY_BLOCKING = 2
} cudnnErrQueryMode_t;

typedef struct cudnnRuntimeTag_t cudnnRuntimeTag_t;

cudnnStatus_t CUDNNWINAPI cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* rstatus,
                                                 cudnnErrQueryMode_t mode, cudnnRuntimeTag_t* tag);

/* ---- handles ------------------------------------------------------------------------------- */

/* A handle belongs to the device of the current CUDA context, or to device 0 if there is none.
 * KILN_CUDNN_DEVICE=host makes handles of the host device. */
cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId);
cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId);

/* ---- callbacks ----------------------------------------------------------------------------- */

typedef enum {
  CUDNN_SEV_FATAL = 0,
  CUDNN_SEV_ERROR = 1,
  CUDNN_SEV_WARNING = 2,
  CUDNN_SEV_INFO = 3
} cudnnSeverity_t;

#define CUDNN_SEV_ERROR_EN (1U << CUDNN_SEV_ERROR)
#define CUDNN_SEV_WARNING_EN (1U << CUDNN_SEV_WARNING)
#define CUDNN_SEV_INFO_EN (1U << CUDNN_SEV_INFO)

typedef struct cudnnDebugStruct {
  unsigned cudnn_version;
  cudnnStatus_t cudnnStatus;
  unsigned time_sec; /* since 1970 */
  unsigned time_usec;
  unsigned time_delta; /* milliseconds since the handle was made */
  cudnnHandle_t handle;
  cudaStream_t stream;
  unsigned long long pid, tid;
  int cudaDeviceId;
  int reserved[15];
} cudnnDebug_t;

typedef void (*cudnnCallback_t)(cudnnSeverity_t severity, void* udata, const cudnnDebug_t* debug,
                                const char* message);

/* fptr is called for each error, by the thread whose call fails, if mask has CUDNN_SEV_ERROR_EN.
 * The text ends in two zero bytes. Kiln reports no other severities: see its own log (KILN_LOG). */
cudnnStatus_t CUDNNWINAPI cudnnSetCallback(unsigned mask, void* udata, cudnnCallback_t fptr);
cudnnStatus_t CUDNNWINAPI cudnnGetCallback(unsigned* mask, void** udata, cudnnCallback_t* fptr);

cudnnStatus_t CUDNNWINAPI cudnnGraphVersionCheck(void);

#ifdef __cplusplus
}
#endif

#endif /* CUDNN_GRAPH_H */
