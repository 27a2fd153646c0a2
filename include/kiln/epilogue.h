/* Epilogues: what a convolution does to its sums before it stores them, as a list of operations. */
#ifndef KILN_EPILOGUE_H
#define KILN_EPILOGUE_H

#include "kiln/activation.h"
#include "kiln/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list is empty when it is created, and each kilnAddEpilogue... adds an operation to its end. Of
 * every output, with v = alpha * (its sum) at first, the operations happen in this order:
 *
 *   bias        v = v + bias[channel]
 *   residual    v = v + beta * z
 *   activation  v = act(v)
 *
 * and the output is v. Without a residual in the list, beta * (what the output held) is added
 * before everything else, so that an empty list is the plain operation.
 *
 * Kernels know a bias, a residual and an activation, at most one of each, the bias before the
 * activation and the residual on either side of it. A plan of another list is NOT_SUPPORTED.
 *
 * A descriptor copies what it is given; a plan copies the list. Errors: BAD_PARAM (null),
 * ALLOC_FAILED. */
KILN_API kilnStatus_t kilnCreateEpilogueDescriptor(kilnEpilogueDescriptor_t* descriptor);

/* As kilnDestroyTensorDescriptor. */
KILN_API kilnStatus_t kilnDestroyEpilogueDescriptor(kilnEpilogueDescriptor_t descriptor);

/* biasDesc: one element a channel of the output, sizes {1, channels, 1...}, in its data type.
 * Errors: BAD_PARAM (null, an eighth operation is there already), NOT_INITIALIZED. */
KILN_API kilnStatus_t kilnAddEpilogueBias(kilnEpilogueDescriptor_t descriptor,
                                          kilnTensorDescriptor_t biasDesc);

/* zDesc: the sizes and the data type of the output, any strides; null: z is what the output held.
 * Errors: as above. */
KILN_API kilnStatus_t kilnAddEpilogueResidual(kilnEpilogueDescriptor_t descriptor,
                                              kilnTensorDescriptor_t zDesc);

/* activationDesc: a descriptor that was set. Errors: as above. */
KILN_API kilnStatus_t kilnAddEpilogueActivation(kilnEpilogueDescriptor_t descriptor,
                                                kilnActivationDescriptor_t activationDesc);

/* The numbers of operations in the list and, in *operands, of those that have a tensor of their
 * own, whose addresses an execution is given. Either pointer may be null. Errors: BAD_PARAM (null
 * descriptor). */
KILN_API kilnStatus_t kilnGetEpilogueCounts(kilnEpilogueDescriptor_t descriptor, int* operations,
                                            int* operands);

#ifdef __cplusplus
}
#endif

#endif /* KILN_EPILOGUE_H */
