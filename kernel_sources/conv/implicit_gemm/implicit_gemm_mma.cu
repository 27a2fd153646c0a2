// Forward convolution and data gradient as an implicit matrix product on the tensor cores.
#include "conv/mma/mma_multiply.cuh"

// The way to multiply comes first.
#include "conv/implicit_gemm/implicit_gemm.cuh"
