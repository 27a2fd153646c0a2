// Clusters of thread blocks that read each other's shared memory (from sm_90 on; below, and in a
// launch without clusters, every block is a cluster of its own).
// kernel_sources/host/cluster.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// This block's number within its cluster.
device_inline u32 cluster_rank() {
#if __CUDA_ARCH__ >= 900
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#else
  return 0;
#endif
}

// Blocks of a cluster.
device_inline u32 cluster_size() {
#if __CUDA_ARCH__ >= 900
  u32 size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
#else
  return 1;
#endif
}

// The cluster's number in a grid along x. A cluster's blocks follow each other.
device_inline u32 cluster_number() {
#if __CUDA_ARCH__ >= 900
  u32 number;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
  return number;
#else
  return block_x();
#endif
}

// What a block of the cluster gets of `count`, rounded up: clusters are of 2, 4, 8, 16 blocks.
device_inline u32 cluster_share(u32 count) {
  const u32 size = cluster_size();
  return (count + size - 1) >> (31 - leading_zeros(size));
}

// Every thread of the cluster must arrive; orders their accesses to each other's shared memory. A
// block must not exit while another may still read its shared memory.
device_inline void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#else
  __syncthreads();
#endif
}

// `mine` points into this block's shared memory; the same place in block `rank` of the cluster.
template <class T>
device_inline T* cluster_shared(T* mine, u32 rank) {
#if __CUDA_ARCH__ >= 900
  u64 theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(reinterpret_cast<u64>(mine)), "r"(rank));
  return reinterpret_cast<T*>(theirs);
#else
  return mine;
#endif
}
