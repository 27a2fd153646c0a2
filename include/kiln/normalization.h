/* Normalizations (batch, instance, group, layer, RMS) with scale, bias, residual and activation,
 * and their gradients. */
#ifndef KILN_NORMALIZATION_H
#define KILN_NORMALIZATION_H

#include "kiln/activation.h"
#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of n elements of x (which, says kilnNormalizationStatistics_t): their mean m, M2 the sum of
 * (x - m)^2, and s = 1 / sqrt(M2 / n + epsilon), the inverse deviation. Then
 *
 *   p = (x - m) * s * scale + bias + residual        y = alpha * act(p) + beta * y
 *
 * with scale and bias of the element's channel, as PyTorch computes it. Where statistics are not
 * centered, m is 0.
 *
 * Tensors x, y, residual and their gradients have the same data type and sizes, at least {N, C},
 * and any strides; channels first and last are the fast ones. Scale and bias are C contiguous
 * numbers of the compute type: float, and double for tensors of double. Mean and inverse deviation
 * are contiguous numbers of that type too: {C} of the batch, {N, C} of instances, {N, groups},
 * {N, space...} of pixels.
 *
 * Statistics are formed around a value of the elements, so that a mean of many deviations costs no
 * accuracy, and in an order that depends on sizes alone: the same bits in every run. A NaN or an
 * infinity among the elements makes their statistics, and with them their y, NaN; where statistics
 * are not centered, an infinity makes s 0, and y NaN for itself alone. */

/* What shares a mean and a deviation. */
typedef enum KILN_ENUM_BASE {
  /* A channel: all images and space. Ioffe and Szegedy, "Batch Normalization", 2015. */
  KILN_NORMALIZATION_BATCH = 1600,
  /* A channel of an image. Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016. */
  KILN_NORMALIZATION_INSTANCE = 1601,
  /* C / groups neighboring channels of an image. Wu and He, "Group Normalization", 2018. One group
   * is layer normalization over channels and space. */
  KILN_NORMALIZATION_GROUP = 1602,
  /* The channels of one pixel of an image: layer normalization over C; of a tensor {rows, C} each
   * row. Ba, Kiros and Hinton, "Layer Normalization", 2016; not centered: Zhang and Sennrich, "Root
   * Mean Square Layer Normalization", 2019. Tensors have at most five dimensions. */
  KILN_NORMALIZATION_PIXEL = 1603
} kilnNormalizationStatistics_t;

/* ---- descriptors --------------------------------------------------------------------------- */

/* Sets *descriptor to a new descriptor: statistics of the batch, scale and bias, running
 * statistics, epsilon 1e-5, no activation. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateNormalizationDescriptor(kilnNormalizationDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
KILN_API kilnStatus_t kilnDestroyNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor);

/* affine: 0 if there are no scale and bias, whose pointers are then null, for 1 and 0. running: 0
 * if training updates no running statistics, whose pointers are then null; statistics of the batch
 * alone have running ones. frozen: not 0 if the gradient takes mean and inverse deviation as
 * constants; only of the batch. epsilon: at least 0, finite. Errors: BAD_PARAM. */
KILN_API kilnStatus_t kilnSetNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor,
                                                     int affine, int running, int frozen,
                                                     double epsilon);

/* groups: of KILN_NORMALIZATION_GROUP at least 1, a divisor of C; else 0. centered: 0 if m is 0 and
 * no mean is subtracted; its pointers are then null; not of the batch. Training and backward take
 * all statistics, the other functions those of the batch. Errors: BAD_PARAM. */
KILN_API kilnStatus_t kilnSetNormalizationStatistics(kilnNormalizationDescriptor_t descriptor,
                                                     kilnNormalizationStatistics_t statistics,
                                                     int64_t groups, int centered);

/* Any output pointer may be null. Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnGetNormalizationStatistics(kilnNormalizationDescriptor_t descriptor,
                                                     kilnNormalizationStatistics_t* statistics,
                                                     int64_t* groups, int* centered);

/* bias: 0 if an affine normalization has a scale alone; the pointer of the bias is then null.
 * Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnSetNormalizationBias(kilnNormalizationDescriptor_t descriptor, int bias);

/* bias may be null. Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnGetNormalizationBias(kilnNormalizationDescriptor_t descriptor, int* bias);

/* activationDesc: a descriptor that was set, which is copied; null for none. Errors: BAD_PARAM,
 * NOT_INITIALIZED. */
KILN_API kilnStatus_t kilnSetNormalizationActivation(kilnNormalizationDescriptor_t descriptor,
                                                     kilnActivationDescriptor_t activationDesc);

/* Any output pointer may be null. Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnGetNormalizationDescriptor(kilnNormalizationDescriptor_t descriptor,
                                                     int* affine, int* running, int* frozen,
                                                     double* epsilon);

/* ---- operations ---------------------------------------------------------------------------- *
 *
 * alpha, beta and factor are host values of the compute type; every other pointer is one of the
 * device. residualDesc and dresidualDesc may be null, and then their pointers are. A pointer that
 * descriptors leave out must be null. Errors: BAD_PARAM (what does not fit), NOT_INITIALIZED,
 * NOT_SUPPORTED, and those of kilnFinalizePlan. */

/* By the statistics of x. Writes mean and inverseDeviation, for the gradient, and y. Of the batch
 * this is training: runningMean += factor * (m - runningMean), and runningVariance likewise with
 * the unbiased M2 / (n - 1): factor is PyTorch's momentum, or 1 / (the number of batches so far)
 * for a cumulative average; n is at least 2. Other statistics have the same y in training and
 * inference; factor and running statistics are null. In place: y may be x or residual, though the
 * gradient needs x. Workspace, where it is granted (kilnSetWorkspace), lets more of a GPU take part
 * in the statistics. kilnTunePlan leaves running statistics as they are. */
KILN_API kilnStatus_t kilnCreateNormalizationForwardTrainingPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationForwardTraining(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* scale,
    const void* bias, const void* residual, const void* factor, void* runningMean,
    void* runningVariance, void* mean, void* inverseDeviation, const void* beta, void* y);
KILN_API kilnStatus_t kilnNormalizationForwardTraining(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    kilnTensorDescriptor_t residualDesc, const void* residual, const void* factor,
    void* runningMean, void* runningVariance, void* mean, void* inverseDeviation, const void* beta,
    kilnTensorDescriptor_t yDesc, void* y);

/* The same y from statistics that are given: s = 1 / sqrt(variance + epsilon). In place: y may be x
 * or residual. */
KILN_API kilnStatus_t kilnCreateNormalizationForwardInferencePlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationForwardInference(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* scale,
    const void* bias, const void* mean, const void* variance, const void* residual,
    const void* beta, void* y);
KILN_API kilnStatus_t kilnNormalizationForwardInference(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    const void* mean, const void* variance, kilnTensorDescriptor_t residualDesc,
    const void* residual, const void* beta, kilnTensorDescriptor_t yDesc, void* y);

/* The same y from mean and inverse deviation, as kilnCombineNormalizationMoments gives them. */
KILN_API kilnStatus_t kilnCreateNormalizationApplyPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationApply(kilnHandle_t handle, kilnPlan_t plan,
                                                    const void* alpha, const void* x,
                                                    const void* scale, const void* bias,
                                                    const void* mean, const void* inverseDeviation,
                                                    const void* residual, const void* beta,
                                                    void* y);
KILN_API kilnStatus_t kilnNormalizationApply(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    const void* mean, const void* inverseDeviation, kilnTensorDescriptor_t residualDesc,
    const void* residual, const void* beta, kilnTensorDescriptor_t yDesc, void* y);

/* With g = dy * act'(p), p computed again from x, residual and the statistics that the forward pass
 * wrote:
 *
 *   dbias = sum of g        dscale = sum of g (x - m) s        dresidual = g
 *   dx = alpha * scale * s * (g - dbias / n - (x - m) s * dscale / n) + beta * dx
 *
 * or, frozen, dx = alpha * scale * s * g + beta * dx. dscale and dbias of the batch are always
 * written, for they carry the sums from one pass to the next; those of other statistics, sums over
 * a channel in all images, only where there are scale and bias. There, with h = scale * g and sums
 * over the n elements that share m and s,
 *
 *   dx = alpha * s * (h - sum of h / n - (x - m) s^2 (sum of h (x - m)) / n) + beta * dx
 *
 * without the first sum where m is 0. act' is that of kilnActivationBackward. In place: dx may be
 * dy, x or residual. */
KILN_API kilnStatus_t kilnCreateNormalizationBackwardPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t dyDesc,
    kilnTensorDescriptor_t dresidualDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationBackward(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* scale,
    const void* bias, const void* mean, const void* inverseDeviation, const void* residual,
    const void* dy, void* dscale, void* dbias, void* dresidual, const void* beta, void* dx);
KILN_API kilnStatus_t kilnNormalizationBackward(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    const void* mean, const void* inverseDeviation, kilnTensorDescriptor_t residualDesc,
    const void* residual, kilnTensorDescriptor_t dyDesc, const void* dy, void* dscale, void* dbias,
    kilnTensorDescriptor_t dresidualDesc, void* dresidual, const void* beta,
    kilnTensorDescriptor_t dxDesc, void* dx);

/* The second half of the same, for a convolution that has made the first one in its epilogue
 * (kilnAddEpilogueNormalizationGradient): dy is g, and dscale and dbias are its sums.
 *
 *   dx = alpha * scale * s * (dy - dbias / n - (x - m) s * dscale / n) + beta * dx
 *
 * normDesc: whether there is a scale; nothing else of it counts. Where statistics are frozen there
 * are no sums: BAD_PARAM. In place: dx may be dy or x. */
KILN_API kilnStatus_t kilnCreateNormalizationBackwardApplyPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t dyDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationBackwardApply(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* scale,
    const void* mean, const void* inverseDeviation, const void* dy, const void* dscale,
    const void* dbias, const void* beta, void* dx);
KILN_API kilnStatus_t kilnNormalizationBackwardApply(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* mean,
    const void* inverseDeviation, kilnTensorDescriptor_t dyDesc, const void* dy, const void* dscale,
    const void* dbias, const void* beta, kilnTensorDescriptor_t dxDesc, void* dx);

/* ---- moments of parts of a batch ----------------------------------------------------------- */

/* moments: 3 C numbers of the compute type, n of every channel, then m, then M2. n is right up to
 * 2^24 elements in float (beyond, rounded). */
KILN_API kilnStatus_t kilnCreateNormalizationMomentsPlan(kilnHandle_t handle,
                                                         kilnTensorDescriptor_t xDesc,
                                                         kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteNormalizationMoments(kilnHandle_t handle, kilnPlan_t plan,
                                                      const void* x, void* moments);
KILN_API kilnStatus_t kilnNormalizationMoments(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                               const void* x, void* moments);

/* The moments of a whole from those of `parts` parts (ranks, chunks), one after another in
 * partMoments, combined in that order (Chan, Golub and LeVeque, 1979). Writes what training writes,
 * with n of all parts, and the moments. dataType: of the tensors that were measured. A part may
 * have no elements. channels, parts: at least 1. */
KILN_API kilnStatus_t kilnCreateCombineNormalizationMomentsPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnDataType_t dataType,
    int64_t parts, int64_t channels, kilnPlan_t* plan);
KILN_API kilnStatus_t kilnExecuteCombineNormalizationMoments(kilnHandle_t handle, kilnPlan_t plan,
                                                             const void* partMoments,
                                                             const void* factor, void* runningMean,
                                                             void* runningVariance, void* mean,
                                                             void* inverseDeviation, void* moments);
KILN_API kilnStatus_t kilnCombineNormalizationMoments(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnDataType_t dataType,
    int64_t parts, int64_t channels, const void* partMoments, const void* factor, void* runningMean,
    void* runningVariance, void* mean, void* inverseDeviation, void* moments);

#ifdef __cplusplus
}
#endif

#endif /* KILN_NORMALIZATION_H */
