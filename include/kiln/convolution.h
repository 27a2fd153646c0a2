/* Convolutions: forward, gradients, transposed; with a bias, a residual, an activation. */
#ifndef KILN_CONVOLUTION_H
#define KILN_CONVOLUTION_H

#include "kiln/epilogue.h"
#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KILN_ENUM_BASE {
  KILN_CONVOLUTION = 300,      /* the filter flipped in space: mathematics, the 2014 paper */
  KILN_CROSS_CORRELATION = 301 /* the filter as it lies, as the frameworks have it */
} kilnConvolutionMode_t;

/* How products of f32 are computed; of the other types DEFAULT and TF32 are the same. In DEFAULT
 * and STRICT every NaN stays a NaN, and an infinity an infinity. */
typedef enum KILN_ENUM_BASE {
  KILN_MATH_DEFAULT = 400, /* tensor cores where the error is no worse than that of f32 fused
                            multiply-adds (f32: 3xTF32, src/reference/README.md), else as STRICT */
  KILN_MATH_STRICT = 401,  /* fused multiply-adds of the tensors' compute type alone */
  KILN_MATH_TF32 = 402     /* f32 elements may be cut to 11 bits before they are multiplied: the
                            lower 13 bits of each are left out. So a number below 2^-126 becomes a
                            multiple of 2^-136, perhaps 0. An infinity stays one, and a NaN stays a
                            NaN but for 0x7f800001 to 0x7f801fff and their negatives, which no
                            arithmetic makes: these some engines take for an infinity */
} kilnMathMode_t;

/* ---- descriptors --------------------------------------------------------------------------------
 */

/* Sets *descriptor to a new descriptor of a convolution, which one of the two setters below must
 * set before it is used. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateConvolutionDescriptor(kilnConvolutionDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
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

/* The same for two dimensions of space, H the outer one; padAfter is padBefore. Errors: BAD_PARAM,
 * in these names. */
KILN_API kilnStatus_t kilnSetConvolution2dDescriptor(kilnConvolutionDescriptor_t descriptor,
                                                     int64_t padH, int64_t padW, int64_t strideH,
                                                     int64_t strideW, int64_t dilationH,
                                                     int64_t dilationW, kilnConvolutionMode_t mode,
                                                     kilnDataType_t computeType);

/* Reads a descriptor back. The four arrays have arrayLengthRequested elements; as many of them are
 * written as the convolution has dimensions of space, at most. *arrayLength gets that number. Any
 * output pointer may be null. Errors: BAD_PARAM (null descriptor, arrayLengthRequested below 0),
 * NOT_INITIALIZED (never set). */
KILN_API kilnStatus_t kilnGetConvolutionNdDescriptor(kilnConvolutionDescriptor_t descriptor,
                                                     int arrayLengthRequested, int* arrayLength,
                                                     int64_t padBefore[], int64_t padAfter[],
                                                     int64_t stride[], int64_t dilation[],
                                                     kilnConvolutionMode_t* mode,
                                                     kilnDataType_t* computeType);

/* The group count, 1 until set, divides both C and K; depthwise is groups == C. Errors: BAD_PARAM
 * (null, below 1); that it divides both is checked where they are known, by the plan. */
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

/* The same for x of four dimensions: *n images, *k channels, *p rows and *q columns. */
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

/* ---- operations ---------------------------------------------------------------------------------
 */

/* Types: the two tensors that an operation reads have one data type, and its result has it too, or
 * is f32 where that is f16 or bf16: a filter gradient, say, that is accumulated in f32. z and bias
 * have the result's type.
 *
 * For each operation three functions: kilnCreate...Plan, for the device of `handle`, whose *plan
 * is yet to be finalized; kilnExecute..., whose pointers are device addresses of the tensors that
 * the plan was created with; and the immediate call of the operation's own name. kiln/plan.h says
 * what holds for all, their errors among it. */

/* NaN and infinities in convolutions: an output is what IEEE 754 makes of its products, so a NaN in
 * one of them, an infinity times zero, or infinities of both signs give NaN. Padding is zeros that
 * are multiplied: a NaN or an infinite weight over padding (in a filter gradient, an element of dy
 * over padding of x) gives NaN. In a data gradient the same holds of weights over what lies around
 * dy; what a stride leaves out between its elements is no product. But engines may skip padding, by
 * whole taps of some outputs: so an output whose only products that are NaN are those with padding
 * is either NaN or the sum of its other products, and which of them depends on the engine. No other
 * output depends on it so. */

/* y = alpha * conv(x, w) + beta * y, the forward pass. x has sizes {N, C, space...}, w {K, C per
 * group, taps...}, and y those of kilnGetConvolutionForwardOutputDim. */
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

/* y = epilogue(alpha * conv(x, w)), in one pass over y (but see moments): see kiln/epilogue.h. An
 * execution is given beta and, in the list's order, the addresses of the operations' operands. In
 * place: z may be y. Errors of creation: as without, and NOT_SUPPORTED for a list that kernels do
 * not know. Of execution: BAD_PARAM also if operandCount is not the number of the list's operands.
 */
KILN_API kilnStatus_t kilnCreateConvolutionForwardEpiloguePlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnEpilogueDescriptor_t epilogueDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionForwardEpilogue(kilnHandle_t handle, kilnPlan_t plan,
                                                            const void* alpha, const void* x,
                                                            const void* w, const void* beta,
                                                            int operandCount,
                                                            const void* const operands[], void* y);
KILN_API kilnStatus_t kilnConvolutionForwardEpilogue(
    kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
    kilnFilterDescriptor_t wDesc, const void* w, kilnConvolutionDescriptor_t convDesc,
    const void* beta, kilnEpilogueDescriptor_t epilogueDesc, int operandCount,
    const void* const operands[], kilnTensorDescriptor_t yDesc, void* y);

/* The list of a bias, a residual and an activation, whose tensors have names of their own:
 * y = act(alpha * conv(x, w) + beta * z + bias), in one pass over y. z, the residual, has the sizes
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

/* y = epilogue(alpha * transposed_conv(x, w)): as kilnConvolutionForwardEpilogue. */
KILN_API kilnStatus_t kilnCreateConvolutionTransposedEpiloguePlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnEpilogueDescriptor_t epilogueDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteConvolutionTransposedEpilogue(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* w,
    const void* beta, int operandCount, const void* const operands[], void* y);
KILN_API kilnStatus_t kilnConvolutionTransposedEpilogue(
    kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
    kilnFilterDescriptor_t wDesc, const void* w, kilnConvolutionDescriptor_t convDesc,
    const void* beta, kilnEpilogueDescriptor_t epilogueDesc, int operandCount,
    const void* const operands[], kilnTensorDescriptor_t yDesc, void* y);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CONVOLUTION_H */
