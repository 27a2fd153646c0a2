// TMA copies of boxes of a tensor between global and shared memory (sm_90 and later).
// kernel_sources/host/bulk_copy.cuh defines the same names for the host device.
//
// One thread starts a copy. A load has landed when the current phase of its mbarrier completes
// (mbarrier.cuh). It counts there with the bytes of the whole box: elements outside the tensor are
// filled with zeros and count too. `at` holds the coordinates of the box's first element, innermost
// dimension first. For an im2col map, `at` is {channel, w, h, n} of the first pixel ({channel, w,
// h, d, n} with three spatial dimensions), and `tap` is the offset {w, h} or {w, h, d} that is
// added to every pixel's coordinates. Addresses in shared memory must be multiples of 128 bytes;
// with a swizzle, of the bytes of eight rows.
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

// Stores a box; elements outside the tensor are not stored. The box in shared memory must not be
// overwritten until bulk_wait_read() has waited for the store's group.
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

// Requires a map whose corner offsets are 0: with others, the instruction is illegal.
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

// Closes this thread's current group, which holds all stores issued since the last commit.
device_inline void bulk_commit() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

// Waits until all but the newest N groups of this thread have read their shared memory. A block
// must not exit before that.
template <int N>
device_inline void bulk_wait_read() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#endif
}

// Makes this thread's writes to shared memory visible to TMA, which may read them after a barrier.
// It also orders this thread's reads before TMA loads that overwrite the data.
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
