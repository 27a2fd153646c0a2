/* Locally connected layers: convolutions whose weights differ from one output pixel to the next. */
#ifndef KILN_LOCAL_H
#define KILN_LOCAL_H

#include "kiln/convolution.h"
#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A local receptive field: output (n, k, o) is the sum over channels c and taps t of
 *   x[n, c, o * stride - pad + t * dilation] * w[o, k, c, t]
 * with x, y, padding, strides, dilation, groups and mode as a convolution has them (the math mode
 * does not matter: products are fused multiply-adds of the compute type). The sizes of y are those
 * of kilnGetConvolutionForwardOutputDim for a filter {K, C per group, space...}.
 *
 * Weights are a tensor {P, Q, K, C per group, R, S} (in one dimension {Q, K, C per group, S}, in
 * three {O, P, Q, K, C per group, T, R, S}), P and Q the sizes of y: 2 * space + 2 dimensions. With
 * one more before them, {N, P, Q, K, C per group, R, S}, each image has weights of its own, as
 * where a network predicts them (1 in place of N: all images share them); in three dimensions of
 * space a tensor has no room for it. Strides are any: the frameworks' orders (torch's P, Q, K, C,
 * R, S; Keras' P, Q, R, S, C, K) are strides of these sizes. Kernels are fast where the channels
 * and taps of one filter lie side by side, in any order of the two.
 *
 * A bias has y's sizes, or 1 in some of them, and 1 for the batch: {1, K, P, Q} is one a place, as
 * Keras has it, {1, K, 1, 1} one a channel. Its gradient is kilnReduceTensor's KILN_REDUCE_SUM of
 * dy into a tensor of its sizes.
 *
 * Types are as in convolutions, and so are NaN and infinities; of a data gradient only weights of
 * pixels that there are have products. No workspace, and the same bits every time.
 * Errors of creation: BAD_PARAM naming what does not fit; NOT_SUPPORTED where sizes are beyond what
 * kernels count. */

/* y = alpha * local(x, w) + beta * y + bias; biasDesc and bias may be null. */
KILN_API kilnStatus_t kilnCreateLocalForwardPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                                 kilnTensorDescriptor_t wDesc,
                                                 kilnConvolutionDescriptor_t convDesc,
                                                 kilnTensorDescriptor_t biasDesc,
                                                 kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteLocalForward(kilnHandle_t handle, kilnPlan_t plan,
                                              const void* alpha, const void* x, const void* w,
                                              const void* beta, const void* bias, void* y);
KILN_API kilnStatus_t kilnLocalForward(kilnHandle_t handle, const void* alpha,
                                       kilnTensorDescriptor_t xDesc, const void* x,
                                       kilnTensorDescriptor_t wDesc, const void* w,
                                       kilnConvolutionDescriptor_t convDesc, const void* beta,
                                       kilnTensorDescriptor_t biasDesc, const void* bias,
                                       kilnTensorDescriptor_t yDesc, void* y);

/* dx = alpha * (gradient of sum(dy * local(x, w)) with respect to x) + beta * dx. */
KILN_API kilnStatus_t kilnCreateLocalBackwardDataPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t wDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteLocalBackwardData(kilnHandle_t handle, kilnPlan_t plan,
                                                   const void* alpha, const void* w, const void* dy,
                                                   const void* beta, void* dx);
KILN_API kilnStatus_t kilnLocalBackwardData(kilnHandle_t handle, const void* alpha,
                                            kilnTensorDescriptor_t wDesc, const void* w,
                                            kilnTensorDescriptor_t dyDesc, const void* dy,
                                            kilnConvolutionDescriptor_t convDesc, const void* beta,
                                            kilnTensorDescriptor_t dxDesc, void* dx);

/* dw = alpha * (gradient of sum(dy * local(x, w)) with respect to w) + beta * dw: a sum over the
 * images that share weights. Over padding it is 0. */
KILN_API kilnStatus_t kilnCreateLocalBackwardFilterPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t dwDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteLocalBackwardFilter(kilnHandle_t handle, kilnPlan_t plan,
                                                     const void* alpha, const void* x,
                                                     const void* dy, const void* beta, void* dw);
KILN_API kilnStatus_t kilnLocalBackwardFilter(kilnHandle_t handle, const void* alpha,
                                              kilnTensorDescriptor_t xDesc, const void* x,
                                              kilnTensorDescriptor_t dyDesc, const void* dy,
                                              kilnConvolutionDescriptor_t convDesc,
                                              const void* beta, kilnTensorDescriptor_t dwDesc,
                                              void* dw);

#ifdef __cplusplus
}
#endif

#endif /* KILN_LOCAL_H */
