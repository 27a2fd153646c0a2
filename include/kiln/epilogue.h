/* Epilogues: what a convolution does to its sums before it stores them, as a list of operations. */
#ifndef KILN_EPILOGUE_H
#define KILN_EPILOGUE_H

#include "kiln/activation.h"
#include "kiln/normalization.h"
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
 *   moments     of every channel of the output: the number n of its elements, their mean m, and
 *               M2, the sum of (v - m)^2, of v as it is stored, rounded to the output's type
 *   gradient    v = v * act'(p), of v rounded to the output's type, where act(p) is the output of a
 *               normalization; and the two sums of each channel of v as it is stored that the
 *               normalization's gradient begins with
 *
 * and the output is v. Without a residual in the list, beta * (what the output held) is added
 * before everything else, so that an empty list is the plain operation.
 *
 * Kernels know a bias, a residual, an activation and moments, at most one of each, the bias before
 * the activation, the residual on either side of it, and the moments last; or a bias, a residual
 * and a gradient, the gradient last. A plan of another list is NOT_SUPPORTED.
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

/* An execution writes the moments to the address that it is given for them: 3 C numbers of the
 * compute type, n of every channel, then m, then M2, as kilnNormalizationMoments writes them (Chan,
 * Golub and LeVeque, 1979): kilnCombineNormalizationMoments turns them into what batch
 * normalization needs. They overlap no other operand. The same bits at every execution. Of an empty
 * batch they are 0. Where a channel has an infinity or a NaN, m and M2 are NaN.
 *
 * An engine that can makes them while it stores the output, with workspace
 * (kilnSetPlanWorkspaceLimit; 0.5 MB suffice); else a pass reads the output again. The plan's
 * engine and tile say which (kilnGetPlanInfo). Errors: as above. */
KILN_API kilnStatus_t kilnAddEpilogueMoments(kilnEpilogueDescriptor_t descriptor);

/* The gradient of a batch normalization with activation (kiln/normalization.h), as far as the
 * convolution that makes the gradient of its output can take it. That convolution is a data
 * gradient, which as an operation with an epilogue is the transposed convolution: its x is dy, and
 * its y is dx. A residual before the gradient adds what another path leads back (a shortcut).
 *
 * normDesc: its activation, and whether there are scale and bias; nothing else of it counts.
 * normXDesc: the normalization's x; normResidualDesc: the residual that it added before the
 * activation, null for none. Both have the sizes and the data type of the output, any strides.
 *
 * An execution is given the addresses of x, scale and bias (if affine), mean and inverseDeviation,
 * the residual (if there is one), and of dscale and dbias, which are written: 5 to 8 addresses.
 * What a channel has one of are C numbers of the compute type. With p as kilnNormalizationBackward
 * computes it,
 *
 *   v = v * act'(p)      dbias = sum of v      dscale = sum of v (x - mean) inverseDeviation
 *
 * with v as it is stored: dscale and dbias have no error of another v's rounding, and the same bits
 * at every execution. relu's v stays unless p <= 0, and is 0 then, whatever it was: PyTorch's. act'
 * of the others is that of kilnActivationBackward. dscale and dbias overlap no other operand, and
 * of an empty batch they are 0.
 *
 * An engine that can does it while it stores the output, with workspace (kilnSetPlanWorkspaceLimit;
 * 0.5 MB suffice); else a pass reads the output, x and the residual again. The plan's engine and
 * tile say which (kilnGetPlanInfo). Either way the output has the same bits, if the convolution
 * has. Errors: BAD_PARAM (null, an eighth operation is there already), NOT_INITIALIZED. */
KILN_API kilnStatus_t kilnAddEpilogueNormalizationGradient(kilnEpilogueDescriptor_t descriptor,
                                                           kilnNormalizationDescriptor_t normDesc,
                                                           kilnTensorDescriptor_t normXDesc,
                                                           kilnTensorDescriptor_t normResidualDesc);

/* The numbers of operations in the list and, in *operands, of the addresses that an execution is
 * given for them. Either pointer may be null. Errors: BAD_PARAM (null descriptor). */
KILN_API kilnStatus_t kilnGetEpilogueCounts(kilnEpilogueDescriptor_t descriptor, int* operations,
                                            int* operands);

#ifdef __cplusplus
}
#endif

#endif /* KILN_EPILOGUE_H */
