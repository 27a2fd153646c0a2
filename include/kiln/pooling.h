/* Pooling and its gradient. */
#ifndef KILN_POOLING_H
#define KILN_POOLING_H

#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KILN_ENUM_BASE {
  KILN_POOLING_MAX = 600,
  KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 601, /* the divisor is the whole window,
                                                       but for what ceil mode adds */
  KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 602  /* the divisor is what of it lies in x */
} kilnPoolingMode_t;

/* ---- descriptors --------------------------------------------------------------------------------
 */

/* Sets *descriptor to a new descriptor of a pooling, which one of the two setters below must set
 * before it is used. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreatePoolingDescriptor(kilnPoolingDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
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

/* The same for two dimensions of space, H the outer one; padAfter is padBefore, dilations are 1.
 * Errors: BAD_PARAM, in these names. */
KILN_API kilnStatus_t kilnSetPooling2dDescriptor(kilnPoolingDescriptor_t descriptor,
                                                 kilnPoolingMode_t mode,
                                                 kilnNanPropagation_t nanPropagation,
                                                 int64_t windowH, int64_t windowW, int64_t padH,
                                                 int64_t padW, int64_t strideH, int64_t strideW);

/* Reads a descriptor back. The five arrays have arrayLengthRequested elements; as many of them are
 * written as the pooling has dimensions of space, at most. *arrayLength gets that number. Any
 * output pointer may be null. Errors: BAD_PARAM (null descriptor, arrayLengthRequested below 0),
 * NOT_INITIALIZED (never set). */
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
 * rounded down, or by ceil mode. nbDims must be the rank of x. Errors: BAD_PARAM naming what does
 * not fit, NOT_INITIALIZED. */
KILN_API kilnStatus_t kilnGetPoolingForwardOutputDim(kilnPoolingDescriptor_t poolingDesc,
                                                     kilnTensorDescriptor_t xDesc, int nbDims,
                                                     int64_t dims[]);

/* ---- operations ---------------------------------------------------------------------------------
 */

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

#ifdef __cplusplus
}
#endif

#endif /* KILN_POOLING_H */
