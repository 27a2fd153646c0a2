/* Products of matrices, with an epilogue: linear layers and their gradients. */
#ifndef KILN_MATMUL_H
#define KILN_MATMUL_H

#include "kiln/convolution.h"
#include "kiln/epilogue.h"
#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With s(m, n) the sum over k of a[m, k] * b[k, n],
 *
 *   d = epilogue(alpha * s)
 *
 * Matrices are tensors of two dimensions, rows and columns: a {M, K}, b {K, N}, d {M, N}. With a
 * batch's size before them, a {L, M, K}, b {L, K, N} and d {L, M, N} are L products; 1 in place of
 * L in a or b is one matrix that all share. M or, with a batch, L may be 0. Strides are any (those
 * of a and b may be 0), so a transpose is two sizes and two strides exchanged, and there is no flag
 * for one: the weights {N, K} of a linear layer, their rows dense, are a b of sizes {K, N} and
 * strides {1, K}.
 *
 * The epilogue's list (kiln/epilogue.h) may be null, and may have a bias, a residual and an
 * activation. A bias has one element a column of d, sizes {1, N} or {1, 1, N}, which all matrices
 * share; a residual has d's sizes. Without a residual in the list, beta * (what d held) is added.
 *
 * The layer y = act(x w^T + bias), x {M, K} and w {N, K}, is one product, and its gradients are two
 * more, all calls of this function with other strides. With dy the gradient before the activation:
 *   y  {M, N} = x {M, K}    * w read as {K, N}     strides of b: {1, K}
 *   dx {M, K} = dy {M, N}   * w {N, K}             as they lie
 *   dw {N, K} = dy read as {N, M} * x {M, K}       strides of a: {1, N}
 * and the bias's gradient is kilnReduceTensor's KILN_REDUCE_SUM of dy into {1, N}.
 *
 * Types: a and b have one data type, and d the same or, where that has 16 bits, f32; z and the bias
 * have d's. Products and sums are those of a convolution of one tap (src/reference/README.md has
 * the bound of their error), the same bits every time.
 *
 * It is a convolution's kernel that multiplies: rows or columns of d are the pixels of a filter of
 * one tap, or d is a filter's gradient. Engines have the names of convolutions. They are fastest
 * where of each matrix rows or columns lie side by side at multiples of 16 bytes. */

/* A descriptor has the math mode KILN_MATH_DEFAULT and an alignment of 16 bytes until they are set.
 * Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateMatmulDescriptor(kilnMatmulDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
KILN_API kilnStatus_t kilnDestroyMatmulDescriptor(kilnMatmulDescriptor_t descriptor);

/* mathMode: as kilnSetConvolutionMathMode. alignment: what every operand's address is a multiple of
 * at each execution, in bytes, as kilnSetConvolutionAlignment. Errors: BAD_PARAM (null; unknown
 * mode; not a power of two from 1 to 4096). */
KILN_API kilnStatus_t kilnSetMatmulDescriptor(kilnMatmulDescriptor_t descriptor,
                                              kilnMathMode_t mathMode, int64_t alignment);

/* Either pointer may be null. Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnGetMatmulDescriptor(kilnMatmulDescriptor_t descriptor,
                                              kilnMathMode_t* mathMode, int64_t* alignment);

/* matmulDesc and epilogueDesc may be null: as created, and an empty list. Errors: BAD_PARAM naming
 * what does not fit; NOT_SUPPORTED for an epilogue that no kernel has. */
KILN_API kilnStatus_t kilnCreateMatmulPlan(kilnHandle_t handle, kilnMatmulDescriptor_t matmulDesc,
                                           kilnTensorDescriptor_t aDesc,
                                           kilnTensorDescriptor_t bDesc,
                                           kilnEpilogueDescriptor_t epilogueDesc,
                                           kilnTensorDescriptor_t dDesc, kilnPlan_t* plan);

/* operands: the addresses of the epilogue's tensors in the list's order, operandCount of them; of a
 * residual's z, that of d is allowed where both lie alike. Null where there are none. */
KILN_API kilnStatus_t kilnExecuteMatmul(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                        const void* a, const void* b, const void* beta,
                                        int operandCount, const void* const operands[], void* d);

KILN_API kilnStatus_t kilnMatmul(kilnHandle_t handle, kilnMatmulDescriptor_t matmulDesc,
                                 const void* alpha, kilnTensorDescriptor_t aDesc, const void* a,
                                 kilnTensorDescriptor_t bDesc, const void* b, const void* beta,
                                 kilnEpilogueDescriptor_t epilogueDesc, int operandCount,
                                 const void* const operands[], kilnTensorDescriptor_t dDesc,
                                 void* d);

#ifdef __cplusplus
}
#endif

#endif /* KILN_MATMUL_H */
