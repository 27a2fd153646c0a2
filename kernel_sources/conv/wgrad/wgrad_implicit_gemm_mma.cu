// Filter gradient as an implicit matrix product on the tensor cores.
#include "conv/mma/mma_multiply.cuh"

// Included after mma_multiply.cuh, which it uses.
#include "conv/wgrad/implicit_gemm.cuh"
