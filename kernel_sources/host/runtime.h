// The interface between a kernel built for the host device and the library that runs it. The
// kernel's shared object needs no symbol of the library, because it reaches the runtime through
// this table. Both sides compile this file, so it includes nothing.
#pragma once

namespace kiln::host {

struct Context;

inline constexpr unsigned most_exchanged = 64;  // bytes from one lane

// Each operating-system thread that runs blocks has one. The scheduler updates the coordinates
// before each fiber resumes; the rest does not change during a launch. A call may suspend the fiber
// that makes it, and returns on the same operating-system thread; after a defect it does not
// return.
struct Context {
  unsigned thread_index[3], block_index[3], grid_size[3];
  unsigned cluster_rank, cluster_size;
  const void* parameters;

  void (*block_barrier)(Context*);
  void (*warp_barrier)(Context*);
  void (*cluster_barrier)(Context*);
  // Passes `value` to the warp and returns the value that `source_lane` (0 to 31) passed.
  unsigned long long (*warp_shuffle)(Context*, unsigned long long value, unsigned source_lane);
  // Passes `bytes` bytes (at most most_exchanged) to the warp and returns an array of what lanes 0
  // to 31 passed. It is valid until the warp's next exchange.
  const void* (*warp_exchange)(Context*, const void* mine, unsigned bytes);
  unsigned (*lane)(Context*);

  void* (*shared_array)(Context*, unsigned offset, unsigned bytes);
  void* (*cluster_shared)(Context*, const void* mine, unsigned rank);

  void (*async_copy)(Context*, void* shared, const void* global, unsigned bytes, bool valid);
  void (*async_commit)(Context*);
  void (*async_wait)(Context*, unsigned newest_groups_left);

  // Waits until `threads` threads of the block have arrived at barrier `number`.
  void (*named_barrier)(Context*, unsigned number, unsigned threads);
  // Barriers in shared memory; each takes 8 bytes at `at`.
  void (*mbarrier_init)(Context*, void* at, unsigned arrivals);
  void (*mbarrier_arrive)(Context*, void* at, unsigned announced_bytes);
  void (*mbarrier_wait)(Context*, void* at, unsigned parity);
  // `map` is 128 bytes that tensor_map.hpp of the host device encodes. `tap` is {w, h} or {w, h, d}
  // for an im2col map and null for a tiled one.
  void (*bulk_load)(Context*, void* shared, const void* map, void* mbarrier, int rank,
                    const int* at, const int* tap);
  void (*bulk_store)(Context*, const void* map, const void* shared, int rank, const int* at,
                     bool im2col);
  void (*bulk_commit)(Context*);
  void (*bulk_wait)(Context*, unsigned newest_groups_left);
};

// Returns the calling thread's context.
using CurrentContext = Context*();

// The object that a kernel's name denotes in its shared object.
struct KernelEntry {
  void (*run)(const void* parameters);  // runs one CUDA thread to its end
  unsigned parameter_bytes;
  unsigned max_threads;      // of a block
  CurrentContext** current;  // the library sets it before the kernel runs
};

}  // namespace kiln::host
