// What passes between a kernel built for the host device and the library that runs it. The kernel's
// shared object needs no symbol of the library: it reaches the runtime through this table. Compiled
// into both sides, so it includes nothing.
#pragma once

namespace kiln::host {

struct Context;

inline constexpr unsigned most_exchanged = 64;  // bytes of one lane

// One for each operating-system thread that runs blocks. The scheduler writes the coordinates anew
// before each fiber resumes; the rest stays for the launch. A call may suspend the fiber that makes
// it, and returns on the same operating-system thread; after a defect it does not return at all.
struct Context {
  unsigned thread_index[3], block_index[3], grid_size[3];
  unsigned cluster_rank, cluster_size;
  const void* parameters;

  void (*block_barrier)(Context*);
  void (*warp_barrier)(Context*);
  void (*cluster_barrier)(Context*);
  // Offers `value` and gives what `source_lane` (0 to 31) of the warp offered.
  unsigned long long (*warp_shuffle)(Context*, unsigned long long value, unsigned source_lane);
  // Offers `bytes` (at most most_exchanged) and gives what lanes 0 to 31 offered, side by side; it
  // stays until the warp's next exchange.
  const void* (*warp_exchange)(Context*, const void* mine, unsigned bytes);
  unsigned (*lane)(Context*);

  void* (*shared_array)(Context*, unsigned offset, unsigned bytes);
  void* (*cluster_shared)(Context*, const void* mine, unsigned rank);

  void (*async_copy)(Context*, void* shared, const void* global, unsigned bytes, bool valid);
  void (*async_commit)(Context*);
  void (*async_wait)(Context*, unsigned newest_groups_left);

  // Of `threads` threads of the block, at barrier `number`.
  void (*named_barrier)(Context*, unsigned number, unsigned threads);
  // Barriers in shared memory, 8 bytes each at `at`.
  void (*mbarrier_init)(Context*, void* at, unsigned arrivals);
  void (*mbarrier_arrive)(Context*, void* at, unsigned announced_bytes);
  void (*mbarrier_wait)(Context*, void* at, unsigned parity);
  // `map`: 128 bytes, as tensor_map.hpp of the host device encodes them. tap: {w, h} of an im2col
  // map, null of a tiled one.
  void (*bulk_load)(Context*, void* shared, const void* map, void* mbarrier, int rank,
                    const int* at, const int* tap);
  void (*bulk_store)(Context*, const void* map, const void* shared, int rank, const int* at,
                     bool im2col);
  void (*bulk_commit)(Context*);
  void (*bulk_wait)(Context*, unsigned newest_groups_left);
};

// Gives the calling thread's.
using CurrentContext = Context*();

// The symbol that a kernel's name stands for in its shared object.
struct KernelEntry {
  void (*run)(const void* parameters);  // one CUDA thread, from first to last statement
  unsigned parameter_bytes;
  unsigned max_threads;      // a block
  CurrentContext** current;  // to be set before the kernel runs
};

}  // namespace kiln::host
