// Forward convolution and data gradient as an implicit matrix product on the tensor cores.
#include "conv/mma/mma_multiply.cuh"

// Must be included after the way to multiply.
#include "conv/implicit_gemm/implicit_gemm.cuh"
