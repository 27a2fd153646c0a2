// Forward convolution and data gradient as an implicit matrix product on the FMA units.
#include "conv/mma/fma_multiply.cuh"

// Must be included after the way to multiply.
#include "conv/implicit_gemm/implicit_gemm.cuh"
