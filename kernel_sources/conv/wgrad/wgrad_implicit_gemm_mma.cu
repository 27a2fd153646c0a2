// Filter gradient as an implicit matrix product on the tensor cores.
#include "conv/mma/mma_multiply.cuh"

// The way to multiply comes first.
#include "conv/wgrad/implicit_gemm.cuh"
