/* Softmax and its gradient. */
#ifndef KILN_SOFTMAX_H
#define KILN_SOFTMAX_H

#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum KILN_ENUM_BASE {
  KILN_SOFTMAX_FAST = 800,     /* the maximum subtracted too, with the hardware's approximate exp */
  KILN_SOFTMAX_ACCURATE = 801, /* exp to the last bit or two */
  KILN_SOFTMAX_LOG = 802       /* the logarithm of the softmax */
} kilnSoftmaxAlgorithm_t;

typedef enum KILN_ENUM_BASE {
  KILN_SOFTMAX_MODE_CHANNEL = 900, /* over the channels, at each location of each image */
  KILN_SOFTMAX_MODE_INSTANCE = 901 /* over channels and space of each image */
} kilnSoftmaxMode_t;

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

#ifdef __cplusplus
}
#endif

#endif /* KILN_SOFTMAX_H */
