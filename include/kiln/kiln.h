/* Kiln: deep-learning primitives whose GPU kernels are generated for exactly the problem at hand.
 *
 * C99. Every function returns a status unless it cannot fail; kilnGetLastErrorMessage() then holds
 * a sentence naming the function, field, its value and what was expected. No function throws, and
 * none keeps a pointer to the caller's arrays. Sizes and strides are counted in elements.
 *
 * The road: descriptors say what is to be computed; a plan is created from them and finalized once
 * (this is where a kernel is generated, and compiled or found in the cache); it is then executed
 * many times, on buffers the caller owns. No function allocates auxiliary device memory.
 *
 * Threads: descriptors may be read, and finalized plans executed, from any number of threads at
 * once. Changing a descriptor, finalizing or destroying a plan, and changing a handle's stream need
 * the caller's own exclusion against other uses of that object. The immediate calls of one handle
 * may be issued from several threads. On the library's own threads no signal is handled.
 *
 * The end of the process: exit() and the return from main withdraw the plans whose turn has not
 * come and wait for those that are being finalized; a plan started later, by an exit handler, is
 * finalized before kilnStartFinalizePlan returns. quick_exit, _exit and abort wait for nothing;
 * only the kernels in the making are lost. The library is never unmapped: its threads outlive a
 * dlclose, after which it may be opened again and is the same one.
 *
 * fork: a child may call everything at any moment, whatever the parent's other threads are doing.
 * It can use the handles, descriptors and finalized plans of the host device that it inherits;
 * those of a GPU it cannot, for CUDA does not survive a fork, nor can it compile with NVRTC if the
 * parent was doing so when it forked (NO_COMPILER). A plan that another thread of the
 * parent was finalizing is NOT_INITIALIZED in the child, where it can only be destroyed; one whose
 * turn had not come can be cancelled there, and is then as if never started. What another thread of
 * the parent was changing without being a finalization (a descriptor being set) is as that thread
 * left it.
 *
 * A set-user-ID program, or one with more than its caller's privileges in another way, reads no
 * environment variable, and keeps no kernels on disk.
 *
 * Memory: where host memory is exhausted a call gives ALLOC_FAILED, or succeeds without what it
 * could do without (a note in the log, an entry of the cache).
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

/* Each enumeration but kilnStatus_t has a hundred numbers of its own, and none is 0: so a value of
 * another enumeration, as of two arguments that were swapped, and one that was never set, are
 * refused with BAD_PARAM. A C++ compiler refuses the former already; a C compiler warns of it with
 * -Wenum-conversion (in GCC a part of -Wextra).
 *
 * C enumerations can hold any int; saying so to C++ as well lets the library look at a wrong value
 * and refuse it. */
#ifdef __cplusplus
#define KILN_ENUM_BASE : int
extern "C" {
#else
#define KILN_ENUM_BASE
#endif

/* ---- version ------------------------------------------------------------------------------ */

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 2
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
  KILN_STATUS_COMPILE_FAILED = 6, /* the message has the compiler's first errors */
  KILN_STATUS_EXECUTION_FAILED = 7, /* a refused load or launch, a defect the host device found */
  KILN_STATUS_ALLOC_FAILED = 8,     /* no host memory, device memory, thread or descriptor left */
  KILN_STATUS_VERSION_MISMATCH = 9,
  KILN_STATUS_INTERNAL_ERROR = 10,
  KILN_STATUS_NOT_CACHED = 11 /* KILN_CACHE=strict, and the kernel is in no bundle and no cache */
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
  KILN_DATA_FLOAT = 100,   /* f32 */
  KILN_DATA_DOUBLE = 101,  /* f64 */
  KILN_DATA_HALF = 102,    /* f16, IEEE binary16 */
  KILN_DATA_BFLOAT16 = 103 /* bf16 */
} kilnDataType_t;

typedef enum KILN_ENUM_BASE {
  KILN_TENSOR_NCHW = 200, /* dense, the last dimension contiguous: NCW, NCHW, NCDHW; filters KCRS */
  KILN_TENSOR_NHWC = 201  /* dense, channels contiguous: NWC, NHWC, NDHWC; filters KRSC */
} kilnTensorFormat_t;

typedef enum KILN_ENUM_BASE {
  KILN_CONVOLUTION = 300,      /* the filter flipped in space: mathematics, the 2014 paper */
  KILN_CROSS_CORRELATION = 301 /* the filter as it lies, as the frameworks have it */
} kilnConvolutionMode_t;

/* How products of f32 are computed; of the other types DEFAULT and TF32 are the same. In DEFAULT
 * and STRICT every NaN stays a NaN, and an infinity an infinity. */
typedef enum KILN_ENUM_BASE {
  KILN_MATH_DEFAULT = 400, /* tensor cores where the error is no worse than that of f32 fused
                            multiply-adds (f32: three products of 11-bit parts), else as STRICT */
  KILN_MATH_STRICT = 401,  /* fused multiply-adds of the tensors' compute type alone */
  KILN_MATH_TF32 = 402     /* f32 elements may be cut to 11 bits before they are multiplied: the
                            lower 13 bits of each are left out. So a number below 2^-126 becomes a
                            multiple of 2^-136, perhaps 0. An infinity stays one, and a NaN stays a
                            NaN but for 0x7f800001 to 0x7f801fff and their negatives, which no
                            arithmetic makes: these some engines take for an infinity */
} kilnMathMode_t;

typedef enum KILN_ENUM_BASE {
  KILN_PROPAGATE_NAN = 500,    /* a NaN among the elements looked at is the result */
  KILN_NOT_PROPAGATE_NAN = 501 /* NaNs are passed over: the maximum of the others */
} kilnNanPropagation_t;

typedef enum KILN_ENUM_BASE {
  KILN_POOLING_MAX = 600,
  KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 601, /* the divisor is the whole window,
                                                       but for what ceil mode adds */
  KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 602  /* the divisor is what of it lies in x */
} kilnPoolingMode_t;

/* Each with f(x) and, in brackets, f' at the corners of f; coef and coef2 are the descriptor's.
 * What f' is taken from, see kilnActivationBackward. */
typedef enum KILN_ENUM_BASE {
  KILN_ACTIVATION_IDENTITY = 700,     /* x */
  KILN_ACTIVATION_SIGMOID = 701,      /* 1 / (1 + exp(-x)) */
  KILN_ACTIVATION_RELU = 702,         /* max(x, 0) [0 at 0] */
  KILN_ACTIVATION_TANH = 703,         /* tanh(x) */
  KILN_ACTIVATION_CLIPPED_RELU = 704, /* min(max(x, 0), coef) [0 at 0 and at coef] */
  KILN_ACTIVATION_LEAKY_RELU = 705,   /* x if x > 0, else coef * x [coef at 0] */
  KILN_ACTIVATION_ELU = 706,          /* x if x > 0, else coef * (exp(x) - 1) [coef at 0] */
  KILN_ACTIVATION_GELU_ERF = 707,     /* x / 2 * (1 + erf(x / sqrt(2))) */
  KILN_ACTIVATION_GELU_TANH = 708,    /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
  KILN_ACTIVATION_SILU = 709,         /* x / (1 + exp(-x)) */
  KILN_ACTIVATION_SOFTPLUS = 710,     /* log(1 + exp(x)) */
  KILN_ACTIVATION_HARD_SWISH = 711,   /* x * min(max(x + 3, 0), 6) / 6 [0 at -3, 1 at 3] */
  KILN_ACTIVATION_ABS = 712,          /* |x| [0 at 0] */
  KILN_ACTIVATION_EXP = 713,          /* exp(x) */
  KILN_ACTIVATION_LOG = 714,          /* the natural logarithm; NaN of x < 0 */
  KILN_ACTIVATION_SQRT = 715,         /* sqrt(x); NaN of x < 0 [infinity at 0] */
  KILN_ACTIVATION_SQUARE = 716,       /* x^2 */
  KILN_ACTIVATION_POW = 717,          /* coef * x^coef2, as C's pow() [f' is 0 if coef2 is 0] */
  KILN_ACTIVATION_MISH = 718,         /* x * tanh(log(1 + exp(x))) */
  KILN_ACTIVATION_HARD_SIGMOID = 719, /* min(max(coef * x + coef2, 0), 1) [0 at both] */
  KILN_ACTIVATION_CLIP = 720,         /* min(max(x, coef), coef2) [0 at both, as hardtanh] */
  KILN_ACTIVATION_LINEAR = 721        /* coef * x + coef2 */
} kilnActivationMode_t;

typedef enum KILN_ENUM_BASE {
  KILN_SOFTMAX_FAST = 800,     /* the maximum subtracted too, with the hardware's approximate exp */
  KILN_SOFTMAX_ACCURATE = 801, /* exp to the last bit or two */
  KILN_SOFTMAX_LOG = 802       /* the logarithm of the softmax */
} kilnSoftmaxAlgorithm_t;

typedef enum KILN_ENUM_BASE {
  KILN_SOFTMAX_MODE_CHANNEL = 900, /* over the channels, at each location of each image */
  KILN_SOFTMAX_MODE_INSTANCE = 901 /* over channels and space of each image */
} kilnSoftmaxMode_t;

typedef enum KILN_ENUM_BASE {
  KILN_OP_TENSOR_ADD = 1000, /* a + b */
  KILN_OP_TENSOR_MUL = 1001, /* a * b */
  KILN_OP_TENSOR_MIN = 1002, /* the smaller of a and b */
  KILN_OP_TENSOR_MAX = 1003, /* the larger of a and b */
  KILN_OP_TENSOR_SUB = 1004, /* a - b */
  KILN_OP_TENSOR_DIV = 1005, /* a / b */
  KILN_OP_TENSOR_EQ = 1006,  /* 1 if a == b, else 0 */
  KILN_OP_TENSOR_NE = 1007,  /* 1 if a != b, else 0 */
  KILN_OP_TENSOR_LT = 1008,  /* 1 if a < b, else 0 */
  KILN_OP_TENSOR_LE = 1009,  /* 1 if a <= b, else 0 */
  KILN_OP_TENSOR_GT = 1010,  /* 1 if a > b, else 0 */
  KILN_OP_TENSOR_GE = 1011   /* 1 if a >= b, else 0 */
} kilnOpTensorOp_t;

typedef enum KILN_ENUM_BASE {
  KILN_REDUCE_SUM = 1100,
  KILN_REDUCE_MEAN = 1101,
  KILN_REDUCE_MAX = 1102,
  KILN_REDUCE_MIN = 1103,
  KILN_REDUCE_NORM2 = 1104, /* the square root of the sum of squares */
  KILN_REDUCE_MUL = 1105,   /* the product */
  KILN_REDUCE_NORM1 = 1106, /* the sum of absolute values */
  KILN_REDUCE_AMAX = 1107   /* the largest absolute value */
} kilnReduceTensorOp_t;

/* The most dimensions a tensor may have. */
#define KILN_DIM_MAX 8

typedef struct kilnContext* kilnHandle_t;
typedef struct kilnTensorStruct* kilnTensorDescriptor_t;
typedef struct kilnFilterStruct* kilnFilterDescriptor_t;
typedef struct kilnConvolutionStruct* kilnConvolutionDescriptor_t;
typedef struct kilnPoolingStruct* kilnPoolingDescriptor_t;
typedef struct kilnActivationStruct* kilnActivationDescriptor_t;
typedef struct kilnPlanStruct* kilnPlan_t;

/* ---- handle ------------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_DEVICE_CUDA = 1200, /* an NVIDIA GPU: its primary context, through the driver API */
  KILN_DEVICE_HOST = 1201  /* the same kernels, compiled by the C++ compiler and run on the CPU: for
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

/* dims = {N, C, spatial...}, strides in elements, in the same order; nbDims is 1 to KILN_DIM_MAX.
 * Convolution and pooling take tensors of 3, 4 or 5 dimensions, softmax of 2 and more, the others
 * any. More than five are folded: dimensions of one element are left out, and two that lie side by
 * side in every tensor of the operation become one. If more than five are left even so, creating
 * the plan fails (NOT_SUPPORTED).
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

/* dims = {K, C per group, filter's space...}: K output channels in all, C/groups input channels.
 * nbDims is 3, 4 or 5. */
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

/* The math mode, KILN_MATH_DEFAULT until set. Errors: BAD_PARAM (null, unknown mode). */
KILN_API kilnStatus_t kilnSetConvolutionMathMode(kilnConvolutionDescriptor_t descriptor,
                                                 kilnMathMode_t mathMode);
KILN_API kilnStatus_t kilnGetConvolutionMathMode(kilnConvolutionDescriptor_t descriptor,
                                                 kilnMathMode_t* mathMode);

/* What every operand's address is a multiple of at each execution, in bytes: 16 until set. Kernels
 * for tensors whose channels lie side by side, and for filter gradients, copy up to 16 bytes at a
 * time; with less, the plan takes one that copies less at a time. An execution with an address
 * below the plan's alignment (kilnGetPlanInfo) is refused. Errors: BAD_PARAM (null; not a power of
 * two from 1 to 4096). */
KILN_API kilnStatus_t kilnSetConvolutionAlignment(kilnConvolutionDescriptor_t descriptor,
                                                  int64_t alignment);
KILN_API kilnStatus_t kilnGetConvolutionAlignment(kilnConvolutionDescriptor_t descriptor,
                                                  int64_t* alignment);

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

/* The sizes of y of the transposed convolution of x (N, K, space): dims[0] = N, dims[1] = C =
 * (second size of w) * groups, then per spatial dimension
 *   (in - 1) * stride + (filter - 1) * dilation + 1 - padBefore - padAfter + outputPadding.
 * outputPadding: at least 0 and below the stride or the dilation, elements that y has more at its
 * end; null: all 0. nbDims must be the rank of x. Errors: BAD_PARAM naming what does not fit. */
KILN_API kilnStatus_t kilnGetConvolutionTransposedOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                            kilnTensorDescriptor_t xDesc,
                                                            kilnFilterDescriptor_t wDesc,
                                                            const int64_t outputPadding[],
                                                            int nbDims, int64_t dims[]);

/* ---- pooling descriptors ------------------------------------------------------------------ */

KILN_API kilnStatus_t kilnCreatePoolingDescriptor(kilnPoolingDescriptor_t* descriptor);
KILN_API kilnStatus_t kilnDestroyPoolingDescriptor(kilnPoolingDescriptor_t descriptor);

/* Per spatial dimension (arrayLength of them: 1, 2 or 3), outermost first: window and stride at
 * least 1; padBefore and padAfter: places before the first and after the last element, a whole
 * window of them or more if need be; negative values leave that many elements unread. padAfter may
 * be null: the same as padBefore; dilation may be null: all 1. Every value is below 2^31 in
 * magnitude. Ceil mode stays as it is.
 * Errors: BAD_PARAM (null, arrayLength, a value out of range, unknown mode). */
KILN_API kilnStatus_t kilnSetPoolingNdDescriptor(
    kilnPoolingDescriptor_t descriptor, kilnPoolingMode_t mode, kilnNanPropagation_t nanPropagation,
    int arrayLength, const int64_t window[], const int64_t padBefore[], const int64_t padAfter[],
    const int64_t stride[], const int64_t dilation[]);

KILN_API kilnStatus_t kilnSetPooling2dDescriptor(kilnPoolingDescriptor_t descriptor,
                                                 kilnPoolingMode_t mode,
                                                 kilnNanPropagation_t nanPropagation,
                                                 int64_t windowH, int64_t windowW, int64_t padH,
                                                 int64_t padW, int64_t strideH, int64_t strideW);

KILN_API kilnStatus_t kilnGetPoolingNdDescriptor(kilnPoolingDescriptor_t descriptor,
                                                 int arrayLengthRequested, kilnPoolingMode_t* mode,
                                                 kilnNanPropagation_t* nanPropagation,
                                                 int* arrayLength, int64_t window[],
                                                 int64_t padBefore[], int64_t padAfter[],
                                                 int64_t stride[], int64_t dilation[]);

/* Whether the sizes of y are rounded down (0, what a new descriptor does) or up (1), as PyTorch's
 * ceil_mode has it: a last window that begins in x or in the padding before it may reach beyond the
 * padding after. What it reaches beyond that is never counted by an average: the divisor of
 * AVERAGE_COUNT_INCLUDE_PADDING is what of the window lies in x and its padding.
 * Errors: BAD_PARAM (null, another value). */
KILN_API kilnStatus_t kilnSetPoolingCeilMode(kilnPoolingDescriptor_t descriptor, int ceilMode);
KILN_API kilnStatus_t kilnGetPoolingCeilMode(kilnPoolingDescriptor_t descriptor, int* ceilMode);

/* The sizes of y: N, C, then per spatial dimension
 *   (in + padBefore + padAfter - ((window - 1) * dilation + 1)) / stride + 1,
 * rounded down, or by ceil mode. nbDims must be the rank of x. */
KILN_API kilnStatus_t kilnGetPoolingForwardOutputDim(kilnPoolingDescriptor_t poolingDesc,
                                                     kilnTensorDescriptor_t xDesc, int nbDims,
                                                     int64_t dims[]);

/* ---- activation descriptors --------------------------------------------------------------- */

KILN_API kilnStatus_t kilnCreateActivationDescriptor(kilnActivationDescriptor_t* descriptor);
KILN_API kilnStatus_t kilnDestroyActivationDescriptor(kilnActivationDescriptor_t descriptor);

/* coef: the ceiling of CLIPPED_RELU, the slope of LEAKY_RELU, the alpha of ELU; finite, and but for
 * the slope at least 0. Modes without a coefficient do not look at it. Errors: BAD_PARAM (null, an
 * unknown mode, coef, a mode with two coefficients). */
KILN_API kilnStatus_t kilnSetActivationDescriptor(kilnActivationDescriptor_t descriptor,
                                                  kilnActivationMode_t mode, double coef);
KILN_API kilnStatus_t kilnGetActivationDescriptor(kilnActivationDescriptor_t descriptor,
                                                  kilnActivationMode_t* mode, double* coef);

/* The same for every mode, those with two coefficients too: the factor and the exponent of POW, the
 * factor and the offset of HARD_SIGMOID and LINEAR, finite; the lower and the upper bound of CLIP,
 * which may be infinite. They are the alpha and beta of oneDNN's eltwise_pow, _hardsigmoid, _linear
 * and _clip. Kernels take them rounded to the compute type. Errors: BAD_PARAM (null, an unknown
 * mode, coef, coef2, bounds out of order). */
KILN_API kilnStatus_t kilnSetActivationDescriptorEx(kilnActivationDescriptor_t descriptor,
                                                    kilnActivationMode_t mode, double coef,
                                                    double coef2);
KILN_API kilnStatus_t kilnGetActivationDescriptorEx(kilnActivationDescriptor_t descriptor,
                                                    kilnActivationMode_t* mode, double* coef,
                                                    double* coef2);

/* ---- plans -------------------------------------------------------------------------------- */

/* Every operation further down has a kilnCreate...Plan, which checks the descriptors against each
 * other and copies them, and makes no kernel yet; a kilnExecute..., for a finalized plan that came
 * from that very function; and an immediate call, in the style of the 2014 paper, which finds the
 * plan in a bounded cache of the handle's, or makes it. */

/* Engines are ways to compute one problem; those for the plan's operation are counted from 0. Each
 * refuses, or has kernels whose times are estimated: the library takes the least estimate, or what
 * `kiln tune` found to be fastest. They can be asked for at any time. Errors: BAD_PARAM (null). */
KILN_API kilnStatus_t kilnGetPlanEngineCount(kilnPlan_t plan, int* count);

/* The engine's name, such as "implicit_gemm_mma", and why it refuses the plan's problem on the
 * plan's device, a clause; "" if it takes it. Both texts are the plan's; either output may be null.
 * Errors: BAD_PARAM (null plan, index out of range). */
KILN_API kilnStatus_t kilnGetPlanEngine(kilnPlan_t plan, int index, const char** name,
                                        const char** refusal);

/* Which engine alone finalization takes; null: the library's choice again. One use is to run at
 * once while the better kernel compiles in the background: "direct" takes every forward and data
 * gradient, "direct_wgrad" every filter gradient; each has one short loop, which compiles several
 * times faster than a tiled kernel, and runs many times slower. Two engines add up in different
 * orders, so their results agree within rounding, not to the bit.
 * Errors: BAD_PARAM (null plan, a name that is none of the operation's engines, a plan that is
 * finalized), NOT_SUPPORTED (that engine refuses; the message says why), NOT_INITIALIZED (the plan
 * is being finalized). A plan whose engine could not be set keeps the one it had. */
KILN_API kilnStatus_t kilnSetPlanEngine(kilnPlan_t plan, const char* engine);

/* Chooses the engine, generates the kernel, finds or compiles it, loads it. All that is slow
 * happens here. Finalizing twice does nothing the second time.
 * Of several processes of a node that want the same new kernel one compiles, and the others wait
 * for it, up to KILN_COMPILE_WAIT seconds. With KILN_CACHE=strict nothing is compiled.
 * Errors: NOT_SUPPORTED, NOT_CACHED (strict; the message names problem and key), NO_COMPILER,
 * COMPILE_FAILED, EXECUTION_FAILED. */
KILN_API kilnStatus_t kilnFinalizePlan(kilnPlan_t plan);

/* The same on a thread of the library's, so that many plans are made at once and the caller goes on
 * meanwhile. Plans wait in a row; at most KILN_COMPILE_THREADS are worked on (default: one a CPU).
 * From here until kilnWaitFinalizePlan, kilnFinalizePlan or a poll with *done = 1 the plan can be
 * neither executed nor queried (NOT_INITIALIZED); destroying it cancels, or waits for what has
 * begun. Starting a plan that is finalized or started does nothing.
 * Errors: BAD_PARAM, ALLOC_FAILED (no memory, or no thread to be had: the plan is as if never
 * started); those of finalization come from wait and poll. */
KILN_API kilnStatus_t kilnStartFinalizePlan(kilnPlan_t plan);

/* Whether it is over: *done is 0 (the status is then SUCCESS) or 1 (the status is that of the
 * finalization). Never waits. A plan that is already finalized is done; so is, in a child of
 * fork(), one that the parent had started. Errors: BAD_PARAM (null), NOT_INITIALIZED (never
 * started), those of kilnFinalizePlan. */
KILN_API kilnStatus_t kilnPollFinalizePlan(kilnPlan_t plan, int* done);

/* Waits until it is over, and gives the finalization's status. Errors: as kilnPollFinalizePlan. */
KILN_API kilnStatus_t kilnWaitFinalizePlan(kilnPlan_t plan);

/* Withdraws a plan whose turn has not come: *cancelled (may be null) is 1, and the plan is as if
 * never started. One that has begun is let finish, for a compiler cannot be stopped half-way:
 * *cancelled is 0, and so it is of a plan that was never started. Never waits.
 * Errors: BAD_PARAM (null plan). */
KILN_API kilnStatus_t kilnCancelFinalizePlan(kilnPlan_t plan, int* cancelled);

/* Null is allowed and ignored. The caller sees to it that no execution is still under way. */
KILN_API kilnStatus_t kilnDestroyPlan(kilnPlan_t plan);

/* ---- plan queries ------------------------------------------------------------------------- */

typedef enum KILN_ENUM_BASE {
  KILN_KERNEL_COMPILED = 1300, /* by this plan's finalization */
  KILN_KERNEL_MEMORY = 1301,   /* this process had it already */
  KILN_KERNEL_DISK = 1302,     /* from the user's kernel cache */
  KILN_KERNEL_BUNDLE = 1303    /* from a bundle of kernels */
} kilnKernelOrigin_t;

typedef struct {
  size_t structSize;         /* set by the caller to sizeof(kilnPlanInfo_t) */
  kilnKernelOrigin_t origin; /* where the kernel came from */
  double generateMs;         /* engine choice and source text */
  double lookupMs;           /* bundles and the user's cache, and waiting for another process that
                                compiles the kernel */
  double compileMs;          /* 0 unless compiled by this finalization */
  double loadMs;             /* module load; 0 for a kernel already loaded */
  double totalMs;            /* the whole of kilnFinalizePlan */
  size_t workspaceBytes;     /* always 0: no engine takes auxiliary memory */
  size_t alignment;          /* bytes that operands must be aligned to; less than an element's
                                size means that size */
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
  KILN_PLAN_PROBLEM = 1400,     /* one line: the problem, as the program `kiln` takes it */
  KILN_PLAN_ENGINE = 1401,      /* the engine's name */
  KILN_PLAN_TILE = 1402,        /* such as "128x128x8, 8x8 a thread, 256 threads" */
  KILN_PLAN_CONSTANTS = 1403,   /* one "name = value" a line, magic divisors among them */
  KILN_PLAN_SOURCE = 1404,      /* the generated kernel source, self-contained */
  KILN_PLAN_PTX = 1405,         /* PTX; "" on the host device */
  KILN_PLAN_COMPILE_LOG = 1406, /* what the compiler said; "" if nothing */
  KILN_PLAN_REFUSALS = 1407,    /* one "engine: reason" a line, of those that refused */
  KILN_PLAN_CACHE_KEY = 1408,   /* the kernel's key in the cache, in hex */
  KILN_PLAN_ARCHITECTURE = 1409 /* what the kernel was compiled for, such as "sm_90a" */
} kilnPlanText_t;

/* Null-terminated text owned by the plan. PROBLEM is there before finalization; REFUSALS also after
 * a finalization that found no engine. */
KILN_API kilnStatus_t kilnGetPlanText(kilnPlan_t plan, kilnPlanText_t which, const char** text);

/* The machine code (a cubin; on the host device, a shared object), owned by the plan. */
KILN_API kilnStatus_t kilnGetPlanBinary(kilnPlan_t plan, const void** data, size_t* size);

/* ---- operations --------------------------------------------------------------------------- */

/* What holds for all of them:
 *
 * Executions go to the handle's stream and return without waiting; they may be captured into a CUDA
 * graph. alpha, beta and the like point to host values of the compute type: double if the tensors
 * are f64 (one of them, for a transform), else float. With beta == 0 the output is not read, so
 * that a NaN in it does not survive. alpha == 0 is a factor like any other: what it multiplies is
 * computed, and gives NaN where it is NaN or infinite. The same call gives the same bits.
 *
 * Tensors are device addresses (on the host device, ordinary memory) of at least the size their
 * descriptors span, aligned to their element size. All tensors of an operation have one data type,
 * but for kilnTransformTensor. No two elements of an output may share an address; inputs may
 * broadcast (stride 0). The output must not overlap an input, unless "in place" below allows it to
 * be that very tensor, with the same sizes, strides and type. Execution refuses an overlap that is
 * certain from the addresses (equal ones, or where both tensors are without gaps); others, such as
 * those of interleaved tensors, are the caller's to avoid. An empty batch is legal.
 *
 * Errors: BAD_PARAM naming the field (null, a descriptor that does not fit, a pointer without its
 * descriptor, a handle of another device, a plan of another operation), NOT_INITIALIZED (never set,
 * not finalized), EXECUTION_FAILED; immediate calls also those of kilnFinalizePlan. */

/* NaN and infinities in convolutions: an output is what IEEE 754 makes of its products, so a NaN in
 * one of them, an infinity times zero, or infinities of both signs give NaN. Padding is zeros that
 * are multiplied: a NaN or an infinite weight over padding (in a filter gradient, an element of dy
 * over padding of x) gives NaN. In a data gradient the same holds of weights over what lies around
 * dy; what a stride leaves out between its elements is no product. But engines may skip padding, by
 * whole taps of some outputs: so an output whose only products that are NaN are those with padding
 * is either NaN or the sum of its other products, and which of them depends on the engine. No other
 * output depends on it so. */

/* y = alpha * conv(x, w) + beta * y. */
KILN_API kilnStatus_t kilnCreateConvolutionForwardPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionForward(kilnHandle_t handle, kilnPlan_t plan,
                                                    const void* alpha, const void* x, const void* w,
                                                    const void* beta, void* y);
KILN_API kilnStatus_t kilnConvolutionForward(kilnHandle_t handle, const void* alpha,
                                             kilnTensorDescriptor_t xDesc, const void* x,
                                             kilnFilterDescriptor_t wDesc, const void* w,
                                             kilnConvolutionDescriptor_t convDesc, const void* beta,
                                             kilnTensorDescriptor_t yDesc, void* y);

/* y = act(alpha * conv(x, w) + beta * z + bias), in one pass over y. z, the residual, has the sizes
 * of y; zDesc and z may be null: beta then scales what y held. bias has one element a filter, sizes
 * {1, K, 1...}; biasDesc and bias may be null. In place: z may be y. */
KILN_API kilnStatus_t kilnCreateConvolutionBiasActivationForwardPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t zDesc,
    kilnTensorDescriptor_t biasDesc, kilnActivationDescriptor_t activationDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionBiasActivationForward(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* w,
    const void* beta, const void* z, const void* bias, void* y);
KILN_API kilnStatus_t kilnConvolutionBiasActivationForward(
    kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
    kilnFilterDescriptor_t wDesc, const void* w, kilnConvolutionDescriptor_t convDesc,
    const void* beta, kilnTensorDescriptor_t zDesc, const void* z, kilnTensorDescriptor_t biasDesc,
    const void* bias, kilnActivationDescriptor_t activationDesc, kilnTensorDescriptor_t yDesc,
    void* y);

/* dx = alpha * (gradient of sum(dy * conv(x, w)) with respect to x) + beta * dx. */
KILN_API kilnStatus_t kilnCreateConvolutionBackwardDataPlan(
    kilnHandle_t handle, kilnFilterDescriptor_t wDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionBackwardData(kilnHandle_t handle, kilnPlan_t plan,
                                                         const void* alpha, const void* w,
                                                         const void* dy, const void* beta,
                                                         void* dx);
KILN_API kilnStatus_t kilnConvolutionBackwardData(kilnHandle_t handle, const void* alpha,
                                                  kilnFilterDescriptor_t wDesc, const void* w,
                                                  kilnTensorDescriptor_t dyDesc, const void* dy,
                                                  kilnConvolutionDescriptor_t convDesc,
                                                  const void* beta, kilnTensorDescriptor_t dxDesc,
                                                  void* dx);

/* dw = alpha * (gradient of sum(dy * conv(x, w)) with respect to w) + beta * dw; beta = 1
 * accumulates the gradients of shared parameters. */
KILN_API kilnStatus_t kilnCreateConvolutionBackwardFilterPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnFilterDescriptor_t dwDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionBackwardFilter(kilnHandle_t handle, kilnPlan_t plan,
                                                           const void* alpha, const void* x,
                                                           const void* dy, const void* beta,
                                                           void* dw);
KILN_API kilnStatus_t kilnConvolutionBackwardFilter(kilnHandle_t handle, const void* alpha,
                                                    kilnTensorDescriptor_t xDesc, const void* x,
                                                    kilnTensorDescriptor_t dyDesc, const void* dy,
                                                    kilnConvolutionDescriptor_t convDesc,
                                                    const void* beta, kilnFilterDescriptor_t dwDesc,
                                                    void* dw);

/* db[k] = alpha * (sum of dy over the batch and space) + beta * db[k]; db has sizes {1, K, 1...}.
 */
KILN_API kilnStatus_t kilnCreateConvolutionBackwardBiasPlan(kilnHandle_t handle,
                                                            kilnTensorDescriptor_t dyDesc,
                                                            kilnTensorDescriptor_t dbDesc,
                                                            kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionBackwardBias(kilnHandle_t handle, kilnPlan_t plan,
                                                         const void* alpha, const void* dy,
                                                         const void* beta, void* db);
KILN_API kilnStatus_t kilnConvolutionBackwardBias(kilnHandle_t handle, const void* alpha,
                                                  kilnTensorDescriptor_t dyDesc, const void* dy,
                                                  const void* beta, kilnTensorDescriptor_t dbDesc,
                                                  void* db);

/* y = alpha * transposed_conv(x, w) + beta * y: the data gradient under the frameworks' name. x has
 * K channels and y has C, for a filter of sizes {K, C per group, ...}: convDesc describes the
 * convolution of y that would give x. */
KILN_API kilnStatus_t kilnCreateConvolutionTransposedPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionTransposed(kilnHandle_t handle, kilnPlan_t plan,
                                                       const void* alpha, const void* x,
                                                       const void* w, const void* beta, void* y);
KILN_API kilnStatus_t kilnConvolutionTransposed(kilnHandle_t handle, const void* alpha,
                                                kilnTensorDescriptor_t xDesc, const void* x,
                                                kilnFilterDescriptor_t wDesc, const void* w,
                                                kilnConvolutionDescriptor_t convDesc,
                                                const void* beta, kilnTensorDescriptor_t yDesc,
                                                void* y);

/* y = alpha * pool(x) + beta * y. Taps outside x are no candidates for a maximum (no tap inside:
 * -infinity), and count in an average's divisor or do not, by the mode (nothing to count: 0). */
KILN_API kilnStatus_t kilnCreatePoolingForwardPlan(kilnHandle_t handle,
                                                   kilnPoolingDescriptor_t poolingDesc,
                                                   kilnTensorDescriptor_t xDesc,
                                                   kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecutePoolingForward(kilnHandle_t handle, kilnPlan_t plan,
                                                const void* alpha, const void* x, const void* beta,
                                                void* y);
KILN_API kilnStatus_t kilnPoolingForward(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                         const void* alpha, kilnTensorDescriptor_t xDesc,
                                         const void* x, const void* beta,
                                         kilnTensorDescriptor_t yDesc, void* y);

/* dx = alpha * (gradient of sum(dy * pool(x)) with respect to x) + beta * dx. A maximum's gradient
 * goes to its first maximal tap, in the order depth, height, width (the first NaN, where those
 * propagate). Averages do not look at x: xDesc and x may be null. */
KILN_API kilnStatus_t kilnCreatePoolingBackwardPlan(
    kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc, kilnTensorDescriptor_t dyDesc,
    kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecutePoolingBackward(kilnHandle_t handle, kilnPlan_t plan,
                                                 const void* alpha, const void* dy, const void* x,
                                                 const void* beta, void* dx);
KILN_API kilnStatus_t kilnPoolingBackward(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                          const void* alpha, kilnTensorDescriptor_t dyDesc,
                                          const void* dy, kilnTensorDescriptor_t xDesc,
                                          const void* x, const void* beta,
                                          kilnTensorDescriptor_t dxDesc, void* dx);

/* y = alpha * f(x) + beta * y. In place: y may be x.
 * f is right over the whole range of the type, down to its subnormal numbers: within 4 units in the
 * last place for f32 and f64; for f16 and bf16, alpha being 1 and beta 0, y is f(x) rounded or a
 * neighbour of that. An infinity gives what f tends to: 0 at -infinity in GELU_ERF, GELU_TANH,
 * SILU, MISH and HARD_SWISH. NaN gives NaN (but x^0 is 1). */
KILN_API kilnStatus_t kilnCreateActivationForwardPlan(kilnHandle_t handle,
                                                      kilnActivationDescriptor_t activationDesc,
                                                      kilnTensorDescriptor_t xDesc,
                                                      kilnTensorDescriptor_t yDesc,
                                                      kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteActivationForward(kilnHandle_t handle, kilnPlan_t plan,
                                                   const void* alpha, const void* x,
                                                   const void* beta, void* y);
KILN_API kilnStatus_t kilnActivationForward(kilnHandle_t handle,
                                            kilnActivationDescriptor_t activationDesc,
                                            const void* alpha, kilnTensorDescriptor_t xDesc,
                                            const void* x, const void* beta,
                                            kilnTensorDescriptor_t yDesc, void* y);

/* dx = alpha * f' * dy + beta * dx. In place: dx may be dy, or the one of y and x needed.
 * f' is taken from y for IDENTITY, SIGMOID (y (1 - y)), RELU, TANH (1 - y^2), CLIPPED_RELU,
 * LEAKY_RELU (of a slope of at least 0: a negative one makes y positive on both sides), ELU (y +
 * coef below 0), EXP (y), SQRT (1 / (2 y)), CLIP and LINEAR, whose forward pass may thus have been
 * in place, and from x for the others: the one not needed, descriptor and pointer, may be null. f'
 * is as accurate as f; but where that of GELU_ERF, GELU_TANH, SILU, MISH or HARD_SWISH crosses
 * zero, within 2^-22 (f64: 2^-51) of the larger of 1 and |x|. At a corner of f, f' is what
 * kilnActivationMode_t says, which is what PyTorch and oneDNN have; y is at a bound of CLIPPED_RELU
 * or CLIP if it is that bound rounded to y's type. At an infinity f' is what it tends to: 1 at
 * +infinity and 0 at -infinity in both GELUs, SILU, MISH and HARD_SWISH. */
KILN_API kilnStatus_t kilnCreateActivationBackwardPlan(
    kilnHandle_t handle, kilnActivationDescriptor_t activationDesc, kilnTensorDescriptor_t yDesc,
    kilnTensorDescriptor_t dyDesc, kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dxDesc,
    kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteActivationBackward(kilnHandle_t handle, kilnPlan_t plan,
                                                    const void* alpha, const void* y,
                                                    const void* dy, const void* x, const void* beta,
                                                    void* dx);
KILN_API kilnStatus_t kilnActivationBackward(kilnHandle_t handle,
                                             kilnActivationDescriptor_t activationDesc,
                                             const void* alpha, kilnTensorDescriptor_t yDesc,
                                             const void* y, kilnTensorDescriptor_t dyDesc,
                                             const void* dy, kilnTensorDescriptor_t xDesc,
                                             const void* x, const void* beta,
                                             kilnTensorDescriptor_t dxDesc, void* dx);

/* y = alpha * softmax(x) + beta * y, or of its logarithm. Softmax is finite for every finite x; so
 * is its logarithm, unless x lies below the row's maximum by more than the compute type's largest
 * number (x of 3e38 and -3e38 in f32): then it is -infinity, as the nearest number is. A NaN or
 * +infinity in a row, or nothing but -infinity, makes the row NaN. In place: y may be x. */
KILN_API kilnStatus_t kilnCreateSoftmaxForwardPlan(kilnHandle_t handle,
                                                   kilnSoftmaxAlgorithm_t algorithm,
                                                   kilnSoftmaxMode_t mode,
                                                   kilnTensorDescriptor_t xDesc,
                                                   kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteSoftmaxForward(kilnHandle_t handle, kilnPlan_t plan,
                                                const void* alpha, const void* x, const void* beta,
                                                void* y);
KILN_API kilnStatus_t kilnSoftmaxForward(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                         kilnSoftmaxMode_t mode, const void* alpha,
                                         kilnTensorDescriptor_t xDesc, const void* x,
                                         const void* beta, kilnTensorDescriptor_t yDesc, void* y);

/* dx = alpha * y * (dy - sum(y * dy)) + beta * dx, sums over y's rows; of LOG, whose y is the
 * logarithm, dx = alpha * (dy - exp(y) * sum(dy)) + beta * dx. In place: dx may be dy. */
KILN_API kilnStatus_t kilnCreateSoftmaxBackwardPlan(
    kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode,
    kilnTensorDescriptor_t yDesc, kilnTensorDescriptor_t dyDesc, kilnTensorDescriptor_t dxDesc,
    kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteSoftmaxBackward(kilnHandle_t handle, kilnPlan_t plan,
                                                 const void* alpha, const void* y, const void* dy,
                                                 const void* beta, void* dx);
KILN_API kilnStatus_t kilnSoftmaxBackward(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                          kilnSoftmaxMode_t mode, const void* alpha,
                                          kilnTensorDescriptor_t yDesc, const void* y,
                                          kilnTensorDescriptor_t dyDesc, const void* dy,
                                          const void* beta, kilnTensorDescriptor_t dxDesc,
                                          void* dx);

/* y = alpha * x + beta * y, between any strides and any types; computed in f64 if either type is
 * f64, else in f32, and rounded once to y's type, to nearest, ties to even. In place: y may be x.
 */
KILN_API kilnStatus_t kilnCreateTransformTensorPlan(kilnHandle_t handle,
                                                    kilnTensorDescriptor_t xDesc,
                                                    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteTransformTensor(kilnHandle_t handle, kilnPlan_t plan,
                                                 const void* alpha, const void* x, const void* beta,
                                                 void* y);
KILN_API kilnStatus_t kilnTransformTensor(kilnHandle_t handle, const void* alpha,
                                          kilnTensorDescriptor_t xDesc, const void* x,
                                          const void* beta, kilnTensorDescriptor_t yDesc, void* y);

/* y = alpha * x + beta * y, where each size of x is that of y, or 1: then it is broadcast. In
 * place: y may be x. */
KILN_API kilnStatus_t kilnCreateAddTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                              kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteAddTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                           const void* x, const void* beta, void* y);
KILN_API kilnStatus_t kilnAddTensor(kilnHandle_t handle, const void* alpha,
                                    kilnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                    kilnTensorDescriptor_t yDesc, void* y);

/* y = *value, a host value of the compute type. */
KILN_API kilnStatus_t kilnCreateSetTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t yDesc,
                                              kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteSetTensor(kilnHandle_t handle, kilnPlan_t plan, void* y,
                                           const void* value);
KILN_API kilnStatus_t kilnSetTensor(kilnHandle_t handle, kilnTensorDescriptor_t yDesc, void* y,
                                    const void* value);

/* y = alpha * y; with alpha == 0, y is not read. */
KILN_API kilnStatus_t kilnCreateScaleTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t yDesc,
                                                kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteScaleTensor(kilnHandle_t handle, kilnPlan_t plan, void* y,
                                             const void* alpha);
KILN_API kilnStatus_t kilnScaleTensor(kilnHandle_t handle, kilnTensorDescriptor_t yDesc, void* y,
                                      const void* alpha);

/* c = op(alpha1 * a, alpha2 * b) + beta * c, where each size of a and of b is that of c, or 1: then
 * it is broadcast. MIN and MAX of a NaN are NaN; comparisons give 1 where they hold and 0
 * elsewhere, and with a NaN none but NE holds. In place: c may be a or b. */
KILN_API kilnStatus_t kilnCreateOpTensorPlan(kilnHandle_t handle, kilnOpTensorOp_t op,
                                             kilnTensorDescriptor_t aDesc,
                                             kilnTensorDescriptor_t bDesc,
                                             kilnTensorDescriptor_t cDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteOpTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha1,
                                          const void* a, const void* alpha2, const void* b,
                                          const void* beta, void* c);
KILN_API kilnStatus_t kilnOpTensor(kilnHandle_t handle, kilnOpTensorOp_t op, const void* alpha1,
                                   kilnTensorDescriptor_t aDesc, const void* a, const void* alpha2,
                                   kilnTensorDescriptor_t bDesc, const void* b, const void* beta,
                                   kilnTensorDescriptor_t cDesc, void* c);

/* c = alpha * reduce(a) + beta * c, over every dimension in which c has size 1; its other sizes are
 * those of a. MAX, MIN and AMAX of a NaN are NaN. NORM2 is finite wherever the norm is within the
 * compute type's range, and no square that counts is lost, as in BLAS' nrm2; sums and products may
 * leave the range on the way. Over an empty batch a sum or a norm is 0 and a product 1; a mean,
 * AMAX, maximum or minimum is refused. */
KILN_API kilnStatus_t kilnCreateReduceTensorPlan(kilnHandle_t handle, kilnReduceTensorOp_t op,
                                                 kilnTensorDescriptor_t aDesc,
                                                 kilnTensorDescriptor_t cDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteReduceTensor(kilnHandle_t handle, kilnPlan_t plan,
                                              const void* alpha, const void* a, const void* beta,
                                              void* c);
KILN_API kilnStatus_t kilnReduceTensor(kilnHandle_t handle, kilnReduceTensorOp_t op,
                                       const void* alpha, kilnTensorDescriptor_t aDesc,
                                       const void* a, const void* beta,
                                       kilnTensorDescriptor_t cDesc, void* c);

/* ---- kernel cache ------------------------------------------------------------------------- */

/* What became of this process's lookups of kernels, since it began; the layers are asked in the
 * order memory, bundles, the user's cache, the compiler. */
typedef struct {
  size_t structSize;            /* set by the caller to sizeof(kilnCacheStats_t) */
  uint64_t memoryHits;          /* kernels that this process had loaded already */
  uint64_t bundleHits;          /* from a bundle (KILN_BUNDLE_PATH, or beside the library) */
  uint64_t diskHits;            /* from the user's cache */
  uint64_t compiled;            /* kernels that this process compiled */
  double compileMs;             /* what all of those took together */
  uint64_t missesAbsent;        /* looked for, and in no layer */
  uint64_t missesOtherProducer; /* a bundle has it, but made by another build of the compiler */
  uint64_t missesCorrupt;       /* an entry was damaged; the user's cache gets a new one */
  uint64_t missesCollision;     /* an entry of another kernel under the same hash */
  uint64_t missesUnreadable;    /* the system refused to read an entry */
  uint64_t missesDisabled;      /* no usable directory, and in no bundle */
  uint64_t waits;               /* times that another process's compiler was waited for */
  uint64_t waitTimeouts;        /* of them, in vain */
  uint64_t published;           /* entries written to the user's cache */
  uint64_t publishFailures;
  uint64_t evicted; /* entries removed to keep the cache below KILN_CACHE_MAX_SIZE */
  uint64_t evictedBytes;
} kilnCacheStats_t;

/* From any thread. A structSize smaller than the library's own, of a program compiled against an
 * older header, gets that many bytes of it. Errors: BAD_PARAM (null, structSize). */
KILN_API kilnStatus_t kilnGetCacheStats(kilnCacheStats_t* stats);

#ifdef __cplusplus
}
#endif

/* ---- whose kernels are run ----------------------------------------------------------------
 *
 * Kernels are machine code, and those of the host device are loaded into the process as a plug-in
 * is. So treat a bundle like a shared library: take it only from somebody whose library you would
 * link with. Bundles are the files that KILN_BUNDLE_PATH names and, without any variable, the file
 * kiln.bundle in the folder of this library: whoever may put a file there gives kernels to every
 * program that uses the library.
 *
 * A bundle has to belong to the effective user, to root or to the library's owner; the user's cache
 * to the effective user alone. What others can have written costs one warning and is not used.
 * cache/README.md has the rules. */

#endif /* KILN_KILN_H */
