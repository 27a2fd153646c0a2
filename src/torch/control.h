/* What the Python package calls in libkiln_torch.so, through ctypes. Functions that return text
 * give "" on success, else a sentence; the text is the library's and valid until the calling
 * thread's next call. */
#ifndef KILN_TORCH_CONTROL_H
#define KILN_TORCH_CONTROL_H

#include <stdint.h>

#if defined(__GNUC__)
#define KILN_TORCH_API __attribute__((visibility("default")))
#else
#define KILN_TORCH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Finds PyTorch's functions in this process. Says why if this PyTorch or this libkiln cannot be
 * served. Every other call needs it. */
KILN_TORCH_API const char* kilnTorchLoad(void);

/* 1 once a plan of this process may have been made, so that libkiln has read its variables. */
KILN_TORCH_API int kilnTorchHasBegun(void);

/* Lets Kiln serve aten::convolution and aten::convolution_backward for a dispatch key, "CUDA" or
 * "CPU", or PyTorch again. The first Enable of a key registers Kiln's kernels, for the life of the
 * process: a kernel that is taken back is deleted under the threads that are executing it. After
 * Disable these kernels hand every call to PyTorch's own. From any thread. Twice is as once. */
KILN_TORCH_API const char* kilnTorchEnable(const char* key);
KILN_TORCH_API const char* kilnTorchDisable(const char* key);

/* Registers the operators of the namespace kiln that this library has (torch/.../operators.hpp) for
 * a key, once. */
KILN_TORCH_API const char* kilnTorchRegisterFused(const char* key);

/* While it is not 0, this thread's calls are PyTorch's own, because PyTorch records what its own
 * kernels call (torch.jit.trace). Returns the value before. */
KILN_TORCH_API int kilnTorchSetRecorded(int recorded);

/* PyTorch's flags for convolutions, each 0 or 1. */
KILN_TORCH_API void kilnTorchSetFlags(int cudnnEnabled, int benchmark, int deterministic,
                                      int allowTf32);

/* 0 wait, 1 background, 2 measure, 3 native; of a thread also -1, as the process. */
KILN_TORCH_API void kilnTorchSetPolicy(int policy);
KILN_TORCH_API void kilnTorchSetThreadPolicy(int policy);

/* What may stand in for a kernel that compiles under the policy `background`: a kilnStandIn_t. */
KILN_TORCH_API void kilnTorchSetStandIn(int allowed);

/* The text of the exception of a native call on this thread. */
KILN_TORCH_API void kilnTorchSetNativeError(const char* text);

/* Where the policy `measure` keeps what it found; "": nowhere. `context` is part of its keys. */
KILN_TORCH_API void kilnTorchUseChoices(const char* path, int writable, const char* context);

KILN_TORCH_API void kilnTorchSetCapacity(uint64_t plans);
KILN_TORCH_API void kilnTorchClear(void);
/* Waits for every kernel that compiles in the background. */
KILN_TORCH_API void kilnTorchWait(void);

/* A JSON array with an object for each plan and each kind of call that was PyTorch's own. */
KILN_TORCH_API const char* kilnTorchReport(void);

#ifdef __cplusplus
}
#endif
#endif
