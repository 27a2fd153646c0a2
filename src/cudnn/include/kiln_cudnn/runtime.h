/* The CUDA types that the declarations need: streams, graphs and library properties. Without CUDA
 * headers, for example on a machine without a GPU, the types are declared here. */
#ifndef KILN_CUDNN_RUNTIME_H
#define KILN_CUDNN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Programs expect cudnn.h to include the whole CUDA runtime API. */
#if defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#define KILN_CUDNN_HAS_RUNTIME
#endif
#else
#define KILN_CUDNN_HAS_RUNTIME
#endif

#ifdef KILN_CUDNN_HAS_RUNTIME
#if defined(__GNUC__)
#pragma GCC system_header
#endif
#include <cuda_runtime.h>
#include <library_types.h>
#else
typedef struct CUstream_st* cudaStream_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef enum libraryPropertyType_t {
  MAJOR_VERSION,
  MINOR_VERSION,
  PATCH_LEVEL
} libraryPropertyType;
#endif

#ifndef CUDNNWINAPI
#define CUDNNWINAPI
#endif

#endif /* KILN_CUDNN_RUNTIME_H */
