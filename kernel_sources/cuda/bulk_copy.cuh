// Copies of boxes of tensors between global and shared memory by the copy engine (sm_90 and up).
// kernel_sources/host/bulk_copy.cuh gives the same names.
//
// One thread starts a copy. A load lands when its barrier's phase ends (mbarrier.cuh), and counts
// with the bytes of a whole box there, those outside the tensor included, which are zeros. `at` is
// where the box begins, innermost dimension first; of an im2col map, {channel, w, h, n} of the
// first pixel ({channel, w, h, d, n} in three dimensions of space), and `tap` the offset {w, h} or
// {w, h, d} of what is read for all of them. Shared addresses are
// multiples of 128; with a swizzle, of eight rows.
#pragma once

#include "common/tensor_map.h"
#include "target/mbarrier.cuh"

namespace bulk {
device_inline u32 shared_place(const void* at) {
  return static_cast<u32>(__cvta_generic_to_shared(at));
}
}  // namespace bulk

template <int RANK>
device_inline void bulk_load(void* shared, const TensorMap& map, Mbarrier& barrier,
                             const int (&at)[RANK]) {
  static_assert(RANK >= 2 && RANK <= 5);
#if __CUDA_ARCH__ >= 900
  if constexpr (RANK == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4}], [%2];" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1])
        : "memory");
  else if constexpr (RANK == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5}], [%2];" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  else if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6}], [%2];" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6, %7}], [%2];" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
#endif
}

template <int RANK>
device_inline void bulk_load_im2col(void* shared, const TensorMap& map, Mbarrier& barrier,
                                    const int (&at)[RANK], const int (&tap)[RANK - 2]) {
  static_assert(RANK == 4 || RANK == 5);
#if __CUDA_ARCH__ >= 900
  if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
        "h"(static_cast<short>(tap[0])), "h"(static_cast<short>(tap[1]))
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(bulk::shared_place(shared)),
        "l"(&map), "r"(barrier.place()), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]),
        "h"(static_cast<short>(tap[0])), "h"(static_cast<short>(tap[1])),
        "h"(static_cast<short>(tap[2]))
        : "memory");
#endif
}

// What lies outside the tensor is not stored. The box's place in shared memory is the copy engine's
// until bulk_wait_read() lets the store's group pass.
template <int RANK>
device_inline void bulk_store(const TensorMap& map, const void* shared, const int (&at)[RANK]) {
  static_assert(RANK >= 2 && RANK <= 5);
#if __CUDA_ARCH__ >= 900
  if constexpr (RANK == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1])
        : "memory");
  else if constexpr (RANK == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            &map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  else if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], "
        "[%1];" ::"l"(&map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], "
        "[%1];" ::"l"(&map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
#endif
}

// The corners of the map are 0: other ones are an illegal instruction.
template <int RANK>
device_inline void bulk_store_im2col(const TensorMap& map, const void* shared,
                                     const int (&at)[RANK]) {
  static_assert(RANK == 4 || RANK == 5);
#if __CUDA_ARCH__ >= 900
  if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, "
        "%5}], [%1];" ::"l"(&map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, "
        "%5, %6}], [%1];" ::"l"(&map),
        "r"(bulk::shared_place(shared)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
#endif
}

// Closes this thread's group of stores: all since the last commit.
device_inline void bulk_commit() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Waits until all but the newest N groups of this thread have read what they store. A block must
// not exit before.
template <int N>
device_inline void bulk_wait_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#endif
}

// What this thread has written to shared memory, the copy engine may read after a barrier; what it
// has read there, a load may then replace.
device_inline void show_to_copy_engine() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Prefetches the map before the first copy needs it.
device_inline void prefetch_map(const TensorMap& map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}
