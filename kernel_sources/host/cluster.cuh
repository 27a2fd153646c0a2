// Clusters of thread blocks, on the host device: see kernel_sources/cuda/cluster.cuh. A launch's
// blocks without clusters are clusters of one.
#pragma once

#include "target/kernel.cuh"

device_inline u32 cluster_rank() { return kiln_context->cluster_rank; }
device_inline u32 cluster_size() { return kiln_context->cluster_size; }
device_inline u32 cluster_number() { return block_x() / cluster_size(); }
device_inline u32 cluster_share(u32 count) { return (count + cluster_size() - 1) / cluster_size(); }
device_inline void cluster_barrier() { kiln_context->cluster_barrier(kiln_context); }

// The shared memory of a block that has exited holds 0xff bytes.
template <class T>
device_inline T* cluster_shared(T* mine, u32 rank) {
  return static_cast<T*>(kiln_context->cluster_shared(kiln_context, mine, rank));
}
