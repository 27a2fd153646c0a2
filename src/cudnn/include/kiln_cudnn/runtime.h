/* What of CUDA the declarations need: streams, graphs and library properties. Where there are no
 * CUDA headers, as on a machine that has the host device alone, the types are declared here. */
#ifndef KILN_CUDNN_RUNTIME_H
#define KILN_CUDNN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Programs expect the whole runtime API from cudnn.h. */
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
