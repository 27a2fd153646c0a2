// Clusters of thread blocks that read each other's shared memory (sm_90 and later). Without
// CLUSTERED every block is a cluster of its own. kernel_sources/host/cluster.cuh defines the same
// names for the host device.
#pragma once

#include "target/kernel.cuh"

// This block's number within its cluster.
device_inline u32 cluster_rank() {
  u32 rank = 0;
  if constexpr (CLUSTERED) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The number of blocks in a cluster.
device_inline u32 cluster_size() {
  u32 size = 1;
  if constexpr (CLUSTERED) asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// The cluster's number in a grid along x. The blocks of a cluster have consecutive numbers.
device_inline u32 cluster_number() {
  u32 number = block_x();
  if constexpr (CLUSTERED) asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
  return number;
}

// How many of `count` items one block of the cluster takes, rounded up.
device_inline u32 cluster_share(u32 count) {
  const u32 size = cluster_size();
  return (count + size - 1) / size;
}

// A barrier at which every thread of the cluster must arrive. It orders their accesses to each
// other's shared memory. A block must not exit while another may still read its shared memory.
device_inline void cluster_barrier() {
  if constexpr (CLUSTERED)
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n\t"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
  else
    block_barrier();
}

// The two halves of a barrier that orders no accesses, between which a block does not wait: it
// arrives after a block barrier behind its last reads of other blocks' memory, and waits before it
// exits. A barrier that orders accesses would also wait for what the block stored in between.
device_inline void cluster_arrive() {
  if constexpr (CLUSTERED) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
device_inline void cluster_wait() {
  if constexpr (CLUSTERED) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// The address in block `rank` of the cluster that corresponds to `mine`, an address in this block's
// shared memory.
template <class T>
device_inline T* cluster_shared(T* mine, u32 rank) {
  u64 theirs = reinterpret_cast<u64>(mine);
  if constexpr (CLUSTERED) asm("mapa.u64 %0, %0, %1;" : "+l"(theirs) : "r"(rank));
  return reinterpret_cast<T*>(theirs);
}
