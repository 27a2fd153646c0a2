// Forward convolution and data gradient as an implicit matrix product on the FMA units.
#include "conv/mma/fma_multiply.cuh"

// The way to multiply comes first.
#include "conv/implicit_gemm/implicit_gemm.cuh"
