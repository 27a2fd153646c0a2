// Clusters of thread blocks, on the host device: see kernel_sources/cuda/cluster.cuh.
#pragma once

#include "target/kernel.cuh"

device_inline u32 cluster_rank() { return CLUSTERED ? kiln_context->cluster_rank : 0; }
device_inline u32 cluster_size() { return CLUSTERED ? kiln_context->cluster_size : 1; }
device_inline u32 cluster_number() { return block_x() / cluster_size(); }
device_inline u32 cluster_share(u32 count) { return (count + cluster_size() - 1) / cluster_size(); }
device_inline void cluster_barrier() {
  if constexpr (CLUSTERED)
    kiln_context->cluster_barrier(kiln_context);
  else
    block_barrier();
}
device_inline void cluster_arrive() {}
device_inline void cluster_wait() { cluster_barrier(); }

// The shared memory of a block that has exited holds 0xff bytes.
template <class T>
device_inline T* cluster_shared(T* mine, u32 rank) {
  if constexpr (!CLUSTERED) return mine;
  return static_cast<T*>(kiln_context->cluster_shared(kiln_context, mine, rank));
}
