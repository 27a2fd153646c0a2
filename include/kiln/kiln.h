/* Kiln: deep-learning primitives whose GPU kernels are generated for exactly the problem at hand.
 *
 * C99. Every function returns a status unless it cannot fail; kilnGetLastErrorMessage() then holds
 * a whole sentence naming the field, its value and what was expected. No function throws, and none
 * keeps a pointer to the caller's arrays. Sizes and strides are counted in elements.
 *
 * The road: descriptors say what is to be computed; a plan is created from them and finalized once
 * (this is where a kernel is generated, and compiled or found in the cache); it is then executed
 * many times, on buffers the caller owns. No function allocates auxiliary device memory.
 *
 * Threads: descriptors may be read, and finalized plans executed, from any number of threads at
 * once. Changing a descriptor, finalizing or destroying a plan, and changing a handle's stream need
 * the caller's own exclusion against other uses of that object. The immediate calls of one handle
 * may be issued from several threads.
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

/* C enumerations can hold any int; saying so to C++ as well lets the library look at a wrong value
 * and refuse it. */
#ifdef __cplusplus
#define KILN_ENUM_BASE : int
extern "C" {
#else
#define KILN_ENUM_BASE
#endif

/* ---- version ------------------------------------------------------------------------------ */

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
#define KILN_VERSION (KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH)

/* The version of the library that is running: major * 10000 + minor * 100 + patch. */
KILN_API int kilnGetVersion(void);

/* ---- status ------------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_STATUS_SUCCESS = 0,
  KILN_STATUS_BAD_PARAM = 1,       /* an argument or a descriptor field is wrong */
  KILN_STATUS_NOT_INITIALIZED = 2, /* a descriptor was never set, a plan never finalized */
  KILN_STATUS_NOT_SUPPORTED = 3,  /* legal, but no engine takes it; plan queries tell each reason */
  KILN_STATUS_NO_DEVICE = 4,      /* no driver, no GPU, or no such ordinal */
  KILN_STATUS_NO_COMPILER = 5,    /* the kernel is not cached, NVRTC (or a C++ compiler) missing */
  KILN_STATUS_COMPILE_FAILED = 6, /* the message carries log, options and source */
  KILN_STATUS_EXECUTION_FAILED = 7, /* a refused load or launch, a defect the host device found */
  KILN_STATUS_ALLOC_FAILED = 8,
  KILN_STATUS_VERSION_MISMATCH = 9,
  KILN_STATUS_INTERNAL_ERROR = 10
} kilnStatus_t;

/* The name of a status, such as "KILN_STATUS_BAD_PARAM". Never null. */
KILN_API const char* kilnGetErrorString(kilnStatus_t status);

/* The sentence that goes with the calling thread's last failed call; "" if there was none. Valid
 * until this thread's next failing call. */
KILN_API const char* kilnGetLastErrorMessage(void);

/* KILN_STATUS_VERSION_MISMATCH if the running library cannot serve a program compiled against
 * headers of `header_version`: another major version, or (while the major version is 0) another
 * minor one. Call it as kilnCheckVersion(KILN_VERSION). */
KILN_API kilnStatus_t kilnCheckVersion(int header_version);

/* ---- types -------------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_DATA_FLOAT = 0,   /* f32 */
  KILN_DATA_DOUBLE = 1,  /* f64 */
  KILN_DATA_HALF = 2,    /* f16, IEEE binary16 */
  KILN_DATA_BFLOAT16 = 3 /* bf16 */
} kilnDataType_t;

typedef enum KILN_ENUM_BASE {
  KILN_TENSOR_NCHW = 0, /* dense, the last dimension contiguous: NCW, NCHW, NCDHW; filters KCRS */
  KILN_TENSOR_NHWC = 1  /* dense, channels contiguous: NWC, NHWC, NDHWC; filters KRSC */
} kilnTensorFormat_t;

typedef enum KILN_ENUM_BASE {
  KILN_CONVOLUTION = 0,      /* the filter flipped in space: mathematics, the 2014 paper */
  KILN_CROSS_CORRELATION = 1 /* the filter as it lies, as the frameworks have it */
} kilnConvolutionMode_t;

/* The most dimensions a tensor or filter may have: batch, channels and three of space. */
#define KILN_DIM_MAX 5

typedef struct kilnContext* kilnHandle_t;
typedef struct kilnTensorStruct* kilnTensorDescriptor_t;
typedef struct kilnFilterStruct* kilnFilterDescriptor_t;
typedef struct kilnConvolutionStruct* kilnConvolutionDescriptor_t;
typedef struct kilnPlanStruct* kilnPlan_t;

/* ---- handle ------------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_DEVICE_CUDA = 0, /* an NVIDIA GPU: its primary context, through the driver API */
  KILN_DEVICE_HOST = 1  /* the same kernels, compiled by the C++ compiler and run on the CPU: for
                           tests, sanitizers and debuggers, not for speed */
} kilnDeviceKind_t;

/* A handle for device `ordinal` of `kind` (the host device has ordinal 0 alone). On a CUDA device
 * it retains the primary context, so buffers of the runtime API and of the frameworks serve.
 * Errors: BAD_PARAM (null handle, unknown kind, ordinal out of range), NO_DEVICE. */
KILN_API kilnStatus_t kilnCreate(kilnHandle_t* handle, kilnDeviceKind_t kind, int ordinal);

/* Null is allowed and ignored. Plans outlive the handle they were made with. */
KILN_API kilnStatus_t kilnDestroy(kilnHandle_t handle);

/* The CUstream (cudaStream_t) that executions with this handle go to; null, the default, is the
 * legacy default stream. The host device has no streams and runs every execution at once. */
KILN_API kilnStatus_t kilnSetStream(kilnHandle_t handle, void* stream);
KILN_API kilnStatus_t kilnGetStream(kilnHandle_t handle, void** stream);

/* ---- tensor descriptors ------------------------------------------------------------------- */

/* For every kind of descriptor: a setter that fails leaves it as it was; destroying null is allowed
 * and ignored. */

KILN_API kilnStatus_t kilnCreateTensorDescriptor(kilnTensorDescriptor_t* descriptor);
KILN_API kilnStatus_t kilnDestroyTensorDescriptor(kilnTensorDescriptor_t descriptor);

/* dims = {N, C, spatial...}, strides in elements, in the same order; nbDims is 3, 4 or 5.
 * N may be 0 (an empty batch); every other size is at least 1. A stride of 0 broadcasts that
 * dimension (inputs only). Any other stride at least 1, in any order: windows, padded rows,
 * channels last.
 * Errors: BAD_PARAM (null, unknown type, nbDims, a size, a stride, or sizes whose last offset in
 * bytes does not fit in 63 bits). */
KILN_API kilnStatus_t kilnSetTensorNdDescriptor(kilnTensorDescriptor_t descriptor,
                                                kilnDataType_t dataType, int nbDims,
                                                const int64_t dims[], const int64_t strides[]);

/* The same with the dense strides of a format. */
KILN_API kilnStatus_t kilnSetTensorNdDescriptorEx(kilnTensorDescriptor_t descriptor,
                                                  kilnTensorFormat_t format,
                                                  kilnDataType_t dataType, int nbDims,
                                                  const int64_t dims[]);

KILN_API kilnStatus_t kilnSetTensor4dDescriptor(kilnTensorDescriptor_t descriptor,
                                                kilnTensorFormat_t format, kilnDataType_t dataType,
                                                int64_t n, int64_t c, int64_t h, int64_t w);

/* Reads a descriptor back. At most nbDimsRequested sizes and strides are written; nbDims gets the
 * true count. Any output pointer may be null. */
KILN_API kilnStatus_t kilnGetTensorNdDescriptor(kilnTensorDescriptor_t descriptor,
                                                int nbDimsRequested, kilnDataType_t* dataType,
                                                int* nbDims, int64_t dims[], int64_t strides[]);

/* ---- filter descriptors ------------------------------------------------------------------- */

KILN_API kilnStatus_t kilnCreateFilterDescriptor(kilnFilterDescriptor_t* descriptor);
KILN_API kilnStatus_t kilnDestroyFilterDescriptor(kilnFilterDescriptor_t descriptor);

/* dims = {K, C per group, filter's space...}: K output channels in all, C/groups input channels. */
KILN_API kilnStatus_t kilnSetFilterNdDescriptor(kilnFilterDescriptor_t descriptor,
                                                kilnDataType_t dataType, kilnTensorFormat_t format,
                                                int nbDims, const int64_t dims[]);

/* The same with strides of the caller's, in elements and in the order of dims, each at least 0. */
KILN_API kilnStatus_t kilnSetFilterNdDescriptorStrided(kilnFilterDescriptor_t descriptor,
                                                       kilnDataType_t dataType, int nbDims,
                                                       const int64_t dims[],
                                                       const int64_t strides[]);

KILN_API kilnStatus_t kilnSetFilter4dDescriptor(kilnFilterDescriptor_t descriptor,
                                                kilnDataType_t dataType, kilnTensorFormat_t format,
                                                int64_t k, int64_t c, int64_t h, int64_t w);

KILN_API kilnStatus_t kilnGetFilterNdDescriptor(kilnFilterDescriptor_t descriptor,
                                                int nbDimsRequested, kilnDataType_t* dataType,
                                                int* nbDims, int64_t dims[], int64_t strides[]);

/* ---- convolution descriptors -------------------------------------------------------------- */

KILN_API kilnStatus_t kilnCreateConvolutionDescriptor(kilnConvolutionDescriptor_t* descriptor);
KILN_API kilnStatus_t kilnDestroyConvolutionDescriptor(kilnConvolutionDescriptor_t descriptor);

/* Per spatial dimension (arrayLength of them: 1, 2 or 3), outermost first:
 * padBefore, padAfter: zeros before the first and after the last element; negative values leave
 *   that many elements unread. padAfter may be null: the same as padBefore.
 * stride at least 1; dilation at least 1 (1 is dense: taps `dilation` elements apart).
 * computeType: the type of accumulation, alpha and beta: DOUBLE for f64 tensors, else FLOAT.
 * Every value is below 2^31 in magnitude. The group count stays as it is.
 * Errors: BAD_PARAM (null, arrayLength, a value out of range, unknown mode or type). */
KILN_API kilnStatus_t kilnSetConvolutionNdDescriptor(
    kilnConvolutionDescriptor_t descriptor, int arrayLength, const int64_t padBefore[],
    const int64_t padAfter[], const int64_t stride[], const int64_t dilation[],
    kilnConvolutionMode_t mode, kilnDataType_t computeType);

KILN_API kilnStatus_t kilnSetConvolution2dDescriptor(kilnConvolutionDescriptor_t descriptor,
                                                     int64_t padH, int64_t padW, int64_t strideH,
                                                     int64_t strideW, int64_t dilationH,
                                                     int64_t dilationW, kilnConvolutionMode_t mode,
                                                     kilnDataType_t computeType);

KILN_API kilnStatus_t kilnGetConvolutionNdDescriptor(kilnConvolutionDescriptor_t descriptor,
                                                     int arrayLengthRequested, int* arrayLength,
                                                     int64_t padBefore[], int64_t padAfter[],
                                                     int64_t stride[], int64_t dilation[],
                                                     kilnConvolutionMode_t* mode,
                                                     kilnDataType_t* computeType);

/* Groups (default 1) divide both C and K; depthwise is groups == C. */
KILN_API kilnStatus_t kilnSetConvolutionGroupCount(kilnConvolutionDescriptor_t descriptor,
                                                   int64_t groupCount);
KILN_API kilnStatus_t kilnGetConvolutionGroupCount(kilnConvolutionDescriptor_t descriptor,
                                                   int64_t* groupCount);

/* The sizes of y = conv(x, w): dims[0] = N, dims[1] = K, then per spatial dimension
 *   (in + padBefore + padAfter - ((filter - 1) * dilation + 1)) / stride + 1, rounded down.
 * nbDims must be the rank of x. Errors: BAD_PARAM naming what does not fit. */
KILN_API kilnStatus_t kilnGetConvolutionForwardOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                         kilnTensorDescriptor_t xDesc,
                                                         kilnFilterDescriptor_t wDesc, int nbDims,
                                                         int64_t dims[]);

KILN_API kilnStatus_t kilnGetConvolution2dForwardOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                           kilnTensorDescriptor_t xDesc,
                                                           kilnFilterDescriptor_t wDesc, int64_t* n,
                                                           int64_t* k, int64_t* p, int64_t* q);

/* ---- plans -------------------------------------------------------------------------------- */

/* Checks the descriptors against each other and copies them; makes no kernel yet. x, w and y have
 * one data type; no two elements of y may share an address.
 * Errors: BAD_PARAM naming the field, NOT_INITIALIZED for a descriptor that was never set. */
KILN_API kilnStatus_t kilnCreateConvolutionForwardPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);

/* Chooses the engine, generates the kernel, finds or compiles it, loads it. All that is slow
 * happens here. Finalizing twice does nothing the second time.
 * Errors: NOT_SUPPORTED, NO_COMPILER, COMPILE_FAILED, EXECUTION_FAILED. */
KILN_API kilnStatus_t kilnFinalizePlan(kilnPlan_t plan);

/* Null is allowed and ignored. The caller sees to it that no execution is still under way. */
KILN_API kilnStatus_t kilnDestroyPlan(kilnPlan_t plan);

/* y = alpha * conv(x, w) + beta * y on the handle's stream; returns without waiting. alpha and beta
 * point to host values of the compute type (double for f64 tensors, else float). With beta == 0, y
 * is not read. x, w and y are device addresses (on the host device, ordinary memory) of at least
 * the size their descriptors span, aligned to their element size or better; a finalized plan may
 * ask for more, see kilnPlanInfo_t. y must not overlap x or w. May be captured into a CUDA graph.
 * Errors: BAD_PARAM (null, misaligned, a handle of another device), NOT_INITIALIZED (not
 * finalized), EXECUTION_FAILED. */
KILN_API kilnStatus_t kilnExecuteConvolutionForward(kilnHandle_t handle, kilnPlan_t plan,
                                                    const void* alpha, const void* x, const void* w,
                                                    const void* beta, void* y);

/* ---- plan queries ------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_KERNEL_COMPILED = 0, /* by this plan's finalization */
  KILN_KERNEL_MEMORY = 1,   /* this process had it already */
  KILN_KERNEL_DISK = 2      /* from the kernel cache */
} kilnKernelOrigin_t;

typedef struct {
  size_t structSize;         /* set by the caller to sizeof(kilnPlanInfo_t) */
  kilnKernelOrigin_t origin; /* where the kernel came from */
  double generateMs;         /* engine choice and source text */
  double lookupMs;           /* kernel cache, memory and disk */
  double compileMs;          /* 0 unless compiled by this finalization */
  double loadMs;             /* module load; 0 for a kernel already loaded */
  double totalMs;            /* the whole of kilnFinalizePlan */
  size_t workspaceBytes;     /* always 0: no engine takes auxiliary memory */
  size_t alignment;          /* bytes that x, w and y must be aligned to */
  int64_t blocks;            /* thread blocks of one execution */
  int threadsPerBlock;
  int sharedMemoryBytes;  /* per block */
  int registersPerThread; /* as the driver reports it; 0 on the host device */
  int localMemoryBytes;   /* per thread; more than 0 means spills; 0 on the host device */
} kilnPlanInfo_t;

/* A structSize smaller than the library's own, of a program compiled against an older header, gets
 * that many bytes of it.
 * Errors: BAD_PARAM (null, structSize), NOT_INITIALIZED (not finalized). */
KILN_API kilnStatus_t kilnGetPlanInfo(kilnPlan_t plan, kilnPlanInfo_t* info);

typedef enum KILN_ENUM_BASE {
  KILN_PLAN_PROBLEM = 0,     /* one line: the problem, as `kiln conv` takes it */
  KILN_PLAN_ENGINE = 1,      /* the engine's name */
  KILN_PLAN_TILE = 2,        /* such as "128x128x8, 8x8 a thread, 256 threads" */
  KILN_PLAN_CONSTANTS = 3,   /* one "name = value" a line, magic divisors among them */
  KILN_PLAN_SOURCE = 4,      /* the generated kernel source, self-contained */
  KILN_PLAN_PTX = 5,         /* PTX; "" on the host device */
  KILN_PLAN_COMPILE_LOG = 6, /* what the compiler said; "" if nothing */
  KILN_PLAN_REFUSALS = 7,    /* one "engine: reason" a line, of the engines asked first */
  KILN_PLAN_CACHE_KEY = 8,   /* the kernel's key in the cache, in hex */
  KILN_PLAN_ARCHITECTURE = 9 /* what the kernel was compiled for, such as "sm_90a" */
} kilnPlanText_t;

/* Null-terminated text owned by the plan. PROBLEM is there before finalization; REFUSALS also after
 * a finalization that found no engine. */
KILN_API kilnStatus_t kilnGetPlanText(kilnPlan_t plan, kilnPlanText_t which, const char** text);

/* The machine code (a cubin; on the host device, a shared object), owned by the plan. */
KILN_API kilnStatus_t kilnGetPlanBinary(kilnPlan_t plan, const void** data, size_t* size);

/* ---- immediate calls ---------------------------------------------------------------------- */

/* y = alpha * conv(x, w) + beta * y in one call, in the style of the 2014 paper: finds the plan in
 * a bounded cache of the handle's, or makes it. Arguments and errors as for the plan calls. */
KILN_API kilnStatus_t kilnConvolutionForward(kilnHandle_t handle, const void* alpha,
                                             kilnTensorDescriptor_t xDesc, const void* x,
                                             kilnFilterDescriptor_t wDesc, const void* w,
                                             kilnConvolutionDescriptor_t convDesc, const void* beta,
                                             kilnTensorDescriptor_t yDesc, void* y);

#ifdef __cplusplus
}
#endif

#endif /* KILN_KILN_H */
