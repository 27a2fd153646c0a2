// Forward convolution and data gradient as an implicit matrix product on the FMA units.
#include "conv/mma/fma_multiply.cuh"

// Included after fma_multiply.cuh, which it uses.
#include "conv/implicit_gemm/implicit_gemm.cuh"
