// TMA copies on the host device: see kernel_sources/cuda/bulk_copy.cuh. A load's destination
// becomes 0xff bytes (not a number) at once, and holds the tensor's elements only after a thread
// has waited for the phase of the load's mbarrier. A store reads shared memory only when its thread
// waits for it. So a missing wait, a wrong phase, and shared memory that is reused too early give
// wrong results.
#pragma once

#include "common/tensor_map.h"
#include "target/mbarrier.cuh"

template <int RANK>
device_inline void bulk_load(void* shared, const TensorMap& map, Mbarrier& barrier,
                             const int (&at)[RANK]) {
  static_assert(RANK >= 2 && RANK <= 5);
  kiln_context->bulk_load(kiln_context, shared, map.bytes, &barrier, RANK, at, nullptr);
}
template <int RANK>
device_inline void bulk_load_im2col(void* shared, const TensorMap& map, Mbarrier& barrier,
                                    const int (&at)[RANK], const int (&tap)[RANK - 2]) {
  static_assert(RANK == 4 || RANK == 5);
  kiln_context->bulk_load(kiln_context, shared, map.bytes, &barrier, RANK, at, tap);
}

template <int RANK>
device_inline void bulk_store(const TensorMap& map, const void* shared, const int (&at)[RANK]) {
  static_assert(RANK >= 2 && RANK <= 5);
  kiln_context->bulk_store(kiln_context, map.bytes, shared, RANK, at, false);
}
template <int RANK>
device_inline void bulk_store_im2col(const TensorMap& map, const void* shared,
                                     const int (&at)[RANK]) {
  static_assert(RANK == 4 || RANK == 5);
  kiln_context->bulk_store(kiln_context, map.bytes, shared, RANK, at, true);
}

device_inline void bulk_commit() { kiln_context->bulk_commit(kiln_context); }
template <int N>
device_inline void bulk_wait_read() {
  static_assert(N >= 0);
  kiln_context->bulk_wait(kiln_context, N);
}
device_inline void show_to_copy_engine() {}
device_inline void prefetch_map(const TensorMap&) {}
