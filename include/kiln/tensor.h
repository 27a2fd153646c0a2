/* Descriptors of tensors and filters. */
#ifndef KILN_TENSOR_H
#define KILN_TENSOR_H

#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For every kind of descriptor: a setter that fails leaves it as it was. */

/* Sets *descriptor to a new descriptor of a tensor, which one of the three functions below must
 * set before it is used. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateTensorDescriptor(kilnTensorDescriptor_t* descriptor);

/* Null is allowed and ignored. Plans keep copies of what they were made from, so a descriptor may
 * be destroyed as soon as they are created. Errors: BAD_PARAM (no such descriptor). */
KILN_API kilnStatus_t kilnDestroyTensorDescriptor(kilnTensorDescriptor_t descriptor);

/* dims = {N, C, spatial...}, strides in elements, in the same order; nbDims is 1 to KILN_DIM_MAX.
 * Convolution and pooling take tensors of 3, 4 or 5 dimensions, softmax of 2 and more, the others
 * any. More than five are folded: dimensions of one element are left out, and two that lie side by
 * side in every tensor of the operation become one. If more than five are left even so, creating
 * the plan fails (NOT_SUPPORTED).
 * N may be 0 (an empty batch); every other size is at least 1. A stride of 0 broadcasts that
 * dimension (inputs only). Any other stride at least 1, in any order: windows, padded rows,
 * channels last.
 * Errors: BAD_PARAM (null, unknown type, nbDims, a size, a stride, or sizes whose last offset in
 * bytes does not fit in 63 bits). */
KILN_API kilnStatus_t kilnSetTensorNdDescriptor(kilnTensorDescriptor_t descriptor,
                                                kilnDataType_t dataType, int nbDims,
                                                const int64_t dims[], const int64_t strides[]);

/* As kilnSetTensorNdDescriptor, with the dense strides of a format. Errors: BAD_PARAM (also:
 * unknown format). */
KILN_API kilnStatus_t kilnSetTensorNdDescriptorEx(kilnTensorDescriptor_t descriptor,
                                                  kilnTensorFormat_t format,
                                                  kilnDataType_t dataType, int nbDims,
                                                  const int64_t dims[]);

/* The same for images: n of them, of c channels, h rows and w columns. Errors: BAD_PARAM, in these
 * names. */
KILN_API kilnStatus_t kilnSetTensor4dDescriptor(kilnTensorDescriptor_t descriptor,
                                                kilnTensorFormat_t format, kilnDataType_t dataType,
                                                int64_t n, int64_t c, int64_t h, int64_t w);

/* Reads a descriptor back. dims and strides are arrays of nbDimsRequested elements; as many of
 * them are written as the tensor has dimensions, at most. *nbDims gets the number of its
 * dimensions. Any output pointer may be null. Errors: BAD_PARAM (null descriptor, nbDimsRequested
 * below 0), NOT_INITIALIZED (never set). */
KILN_API kilnStatus_t kilnGetTensorNdDescriptor(kilnTensorDescriptor_t descriptor,
                                                int nbDimsRequested, kilnDataType_t* dataType,
                                                int* nbDims, int64_t dims[], int64_t strides[]);

/* ---- filters ------------------------------------------------------------------------------ */

/* Sets *descriptor to a new descriptor of a filter, which one of the three functions below must
 * set before it is used. Errors: BAD_PARAM (null), ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateFilterDescriptor(kilnFilterDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
KILN_API kilnStatus_t kilnDestroyFilterDescriptor(kilnFilterDescriptor_t descriptor);

/* dims = {K, C per group, filter's space...}: K output channels in all groups together, C / groups
 * input channels, then the taps of each dimension of space, outermost first. nbDims is 3, 4 or 5;
 * every size is at least 1; strides are the format's dense ones. Errors: BAD_PARAM (null, unknown
 * type or format, nbDims, a size, sizes whose last offset in bytes does not fit in 63 bits). */
KILN_API kilnStatus_t kilnSetFilterNdDescriptor(kilnFilterDescriptor_t descriptor,
                                                kilnDataType_t dataType, kilnTensorFormat_t format,
                                                int nbDims, const int64_t dims[]);

/* The same with strides of the caller's, in elements and in the order of dims, each at least 0 (0
 * broadcasts, and only what is read may: not the filter of a filter gradient). */
KILN_API kilnStatus_t kilnSetFilterNdDescriptorStrided(kilnFilterDescriptor_t descriptor,
                                                       kilnDataType_t dataType, int nbDims,
                                                       const int64_t dims[],
                                                       const int64_t strides[]);

/* The same for images: k output channels, c input channels per group, h rows and w columns of
 * taps. Errors: BAD_PARAM, in these names. */
KILN_API kilnStatus_t kilnSetFilter4dDescriptor(kilnFilterDescriptor_t descriptor,
                                                kilnDataType_t dataType, kilnTensorFormat_t format,
                                                int64_t k, int64_t c, int64_t h, int64_t w);

/* As kilnGetTensorNdDescriptor. */
KILN_API kilnStatus_t kilnGetFilterNdDescriptor(kilnFilterDescriptor_t descriptor,
                                                int nbDimsRequested, kilnDataType_t* dataType,
                                                int* nbDims, int64_t dims[], int64_t strides[]);

#ifdef __cplusplus
}
#endif

#endif /* KILN_TENSOR_H */
