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

typedef struct kilnContext* kilnHandle_t;
typedef struct kilnTensorStruct* kilnTensorDescriptor_t;
typedef struct kilnFilterStruct* kilnFilterDescriptor_t;
typedef struct kilnConvolutionStruct* kilnConvolutionDescriptor_t;
typedef struct kilnPoolingStruct* kilnPoolingDescriptor_t;
typedef struct kilnActivationStruct* kilnActivationDescriptor_t;
typedef struct kilnEpilogueStruct* kilnEpilogueDescriptor_t;
typedef struct kilnPlanStruct* kilnPlan_t;

#ifdef __cplusplus
}
#endif

#endif /* KILN_TYPES_H */
