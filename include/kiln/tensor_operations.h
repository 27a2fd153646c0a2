/* Operations on tensors: transform, add, set, scale, binary operations, reductions. */
#ifndef KILN_TENSOR_OPERATIONS_H
#define KILN_TENSOR_OPERATIONS_H

#include "kiln/plan.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* KILN_TENSOR_OPERATIONS_H */
