// Forward convolution and data gradient as an implicit matrix product on the tensor cores.
#include "conv/mma/mma_multiply.cuh"

// Included after mma_multiply.cuh, which it uses.
#include "conv/implicit_gemm/implicit_gemm.cuh"
