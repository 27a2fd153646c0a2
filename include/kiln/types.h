/* Types that several operations share. */
#ifndef KILN_TYPES_H
#define KILN_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  KILN_PROPAGATE_NAN = 500,    /* a NaN among the elements looked at is the result */
  KILN_NOT_PROPAGATE_NAN = 501 /* NaNs are passed over: the maximum of the others */
} kilnNanPropagation_t;

/* The most dimensions a tensor may have. */
#define KILN_DIM_MAX 8

/* Opaque objects: each is made and destroyed by functions of the header that is named. */
typedef struct kilnContext* kilnHandle_t;                              /* handle.h */
typedef struct kilnTensorStruct* kilnTensorDescriptor_t;               /* tensor.h */
typedef struct kilnFilterStruct* kilnFilterDescriptor_t;               /* tensor.h */
typedef struct kilnConvolutionStruct* kilnConvolutionDescriptor_t;     /* convolution.h */
typedef struct kilnPoolingStruct* kilnPoolingDescriptor_t;             /* pooling.h */
typedef struct kilnActivationStruct* kilnActivationDescriptor_t;       /* activation.h */
typedef struct kilnEpilogueStruct* kilnEpilogueDescriptor_t;           /* epilogue.h */
typedef struct kilnNormalizationStruct* kilnNormalizationDescriptor_t; /* normalization.h */
typedef struct kilnMatmulStruct* kilnMatmulDescriptor_t;               /* matmul.h */
typedef struct kilnPlanStruct* kilnPlan_t;                             /* plan.h */

#ifdef __cplusplus
}
#endif

#endif /* KILN_TYPES_H */
