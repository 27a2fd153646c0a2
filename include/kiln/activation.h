/* Activations and their gradients. */
#ifndef KILN_ACTIVATION_H
#define KILN_ACTIVATION_H

#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- descriptors --------------------------------------------------------------------------------
 */

/* Sets *descriptor to a new descriptor of an activation, which one of the two setters below must
 * set before it is used. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateActivationDescriptor(kilnActivationDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
KILN_API kilnStatus_t kilnDestroyActivationDescriptor(kilnActivationDescriptor_t descriptor);

/* coef: the ceiling of CLIPPED_RELU, the slope of LEAKY_RELU, the alpha of ELU; finite, and but for
 * the slope at least 0. Modes without a coefficient do not look at it. Errors: BAD_PARAM (null, an
 * unknown mode, coef, a mode with two coefficients). */
KILN_API kilnStatus_t kilnSetActivationDescriptor(kilnActivationDescriptor_t descriptor,
                                                  kilnActivationMode_t mode, double coef);

/* Reads mode and first coefficient back; either output may be null. Errors: BAD_PARAM (null
 * descriptor), NOT_INITIALIZED (never set). */
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

/* As kilnGetActivationDescriptor, with the second coefficient. */
KILN_API kilnStatus_t kilnGetActivationDescriptorEx(kilnActivationDescriptor_t descriptor,
                                                    kilnActivationMode_t* mode, double* coef,
                                                    double* coef2);

/* ---- operations ---------------------------------------------------------------------------------
 */

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

#ifdef __cplusplus
}
#endif

#endif /* KILN_ACTIVATION_H */
