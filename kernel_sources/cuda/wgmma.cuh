// Asynchronous matrix products by a warpgroup, four consecutive warps, on the tensor cores (wgmma,
// sm_90a). kernel_sources/host/wgmma.cuh defines the same names for the host device.
//
// The instruction's text depends on the number of columns, so the generator writes WGMMA_COLUMNS
// and WGMMA_SUMS(l), the names of the accumulators (sum_registers.cuh).
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"

// A wgmma operand in shared memory without a swizzle. The PTX ISA calls this a matrix descriptor;
// k_step and n_step are its leading and stride dimension byte offsets, both multiples of 16.
// "Columns" are columns of operand B or rows of operand A.
//
// K-major: 16 bytes hold consecutive elements of the reduction, and those of 8 columns are
// contiguous (a core matrix). k_step is the distance in bytes to the next 16 bytes of the
// reduction, n_step that to the next 8 columns. MN-major, for 16-bit elements only: 16 bytes hold 8
// columns, and those of 8 elements of the reduction are contiguous. k_step is the distance to the
// next 8 elements of the reduction, n_step that to the next 8 columns.
struct SharedMatrix {
  u32 low, high;  // halves of the descriptor

  device_inline SharedMatrix(const void* first, int k_step, int n_step)
      : low(place(first) | static_cast<u32>(k_step >> 4) << 16),
        high(static_cast<u32>(n_step >> 4)) {}
  // A matrix as a TMA load with a swizzle leaves it, in rows of LINE bytes (128, 64 or 32) whose
  // 16-byte units are permuted by the address bits from bit 7 on; so `first` may be any row.
  // `eight_rows` is the distance in bytes between groups of 8 rows. K-major: a row holds LINE bytes
  // of the reduction for one column, and the next 32 bytes of the reduction are 32 bytes further.
  // MN-major: a row holds LINE bytes of columns for one element of the reduction, and `blocks` is
  // the distance in bytes to the next LINE bytes of columns.
  template <int LINE>
  device_inline static SharedMatrix swizzled(const void* first, int eight_rows, int blocks = 16) {
    static_assert(LINE == 128 || LINE == 64 || LINE == 32);
    SharedMatrix matrix(first, blocks, eight_rows);
    matrix.high |= (LINE == 128 ? 1u : LINE == 64 ? 2u : 3u) << 30;
    return matrix;
  }
  device_inline SharedMatrix moved(int bytes) const {
    SharedMatrix other = *this;
    other.low += static_cast<u32>(bytes >> 4);  // the address field of 14 bits does not overflow
    return other;
  }
  device_inline u64 descriptor() const { return static_cast<u64>(high) << 32 | low; }

 private:
  // The address in units of 16 bytes. In a cluster, the block's number is above the address's 18
  // bits.
  device_inline static u32 place(const void* at) {
    return (static_cast<u32>(__cvta_generic_to_shared(at)) & 0x3ffffu) >> 4;
  }
};

// Makes this thread's writes to shared memory visible to the tensor cores, which may read them
// after a barrier.
device_inline void fence_proxy_async() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Asynchronous products, added to LEFT sets of PRODUCTS x 8 columns of sums; each set has left
// operands of its own. Every warp has 16 rows, laid out among its lanes as mma_16x8x8() and
// mma_16x8x16() describe.
template <class T, int LEFT, int PRODUCTS>
class WarpgroupProducts {
 public:
  // Call before the first product of a group. It orders the thread's previous accesses to sums and
  // left operands in registers before the products.
  device_inline void begin() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  }
  // Adds left times right, over 32 bytes of the reduction, to sums `L`; without `add`, overwrites
  // them. Until wait() has waited for the product's group, the sums and the registers of `left`
  // must not be accessed, and the shared memory of `right` must not be written. COLUMNS_INNER:
  // `right` is MN-major.
  template <bool COLUMNS_INNER, int L, class Sums>
  device_inline void multiply(Sums&, const u32 (&left)[4], SharedMatrix right, bool add = true) {
    static_assert(L < LEFT && (!COLUMNS_INNER || sizeof(T) == 2));
#if __CUDA_ARCH_FEAT_SM90_ALL
#define KILN_WGMMA(SHAPE, TYPES, TRANSPOSED)                                                       \
  asm volatile(                                                                                    \
      "{.reg .pred add; setp.ne.b32 add, %6, 0; wgmma.mma_async.sync.aligned.m64n" WGMMA_COLUMNS   \
          SHAPE ".f32" TYPES " {" WGMMA_SUMS("%0") "}, {%1, %2, %3, %4}, %5, add, 1, 1" TRANSPOSED \
                                                   ";}" ::"n"(L),                                  \
      "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right.descriptor()),             \
      "r"(static_cast<u32>(add)))
    if constexpr (sizeof(T) == 4)
      KILN_WGMMA("k8", ".tf32.tf32", "");
    else if constexpr (is_bf16(T{}) && COLUMNS_INNER)
      KILN_WGMMA("k16", ".bf16.bf16", ", 1");
    else if constexpr (is_bf16(T{}))
      KILN_WGMMA("k16", ".bf16.bf16", ", 0");
    else if constexpr (COLUMNS_INNER)
      KILN_WGMMA("k16", ".f16.f16", ", 1");
    else
      KILN_WGMMA("k16", ".f16.f16", ", 0");
#undef KILN_WGMMA
#endif
  }
  // Like the above, with a left operand in shared memory: the warpgroup's 64 rows take the part of
  // columns in SharedMatrix. LEFT_ROWS_INNER: `left` is MN-major. `right` is K-major.
  template <bool LEFT_ROWS_INNER, int L, class Sums>
  device_inline void multiply(Sums&, SharedMatrix left, SharedMatrix right, bool add = true) {
    static_assert(L < LEFT && (!LEFT_ROWS_INNER || sizeof(T) == 2));
#if __CUDA_ARCH_FEAT_SM90_ALL
#define KILN_WGMMA(SHAPE, TYPES, TRANSPOSED)                                                     \
  asm volatile(                                                                                  \
      "{.reg .pred add; setp.ne.b32 add, %3, 0; wgmma.mma_async.sync.aligned.m64n" WGMMA_COLUMNS \
          SHAPE ".f32" TYPES " {" WGMMA_SUMS("%0") "}, %1, %2, add, 1, 1" TRANSPOSED             \
                                                   ";}" ::"n"(L),                                \
      "l"(left.descriptor()), "l"(right.descriptor()), "r"(static_cast<u32>(add)))
    if constexpr (sizeof(T) == 4)
      KILN_WGMMA("k8", ".tf32.tf32", "");
    else if constexpr (is_bf16(T{}) && LEFT_ROWS_INNER)
      KILN_WGMMA("k16", ".bf16.bf16", ", 1, 0");
    else if constexpr (is_bf16(T{}))
      KILN_WGMMA("k16", ".bf16.bf16", ", 0, 0");
    else if constexpr (LEFT_ROWS_INNER)
      KILN_WGMMA("k16", ".f16.f16", ", 1, 0");
    else
      KILN_WGMMA("k16", ".f16.f16", ", 0, 0");
#undef KILN_WGMMA
#endif
  }
  // Like the above for two swizzled matrices. LEFT_BY_STEPS and RIGHT_BY_STEPS: the operand is
  // MN-major, which wgmma allows for 16-bit elements only.
  template <bool LEFT_BY_STEPS, bool RIGHT_BY_STEPS, int L, class Sums>
  device_inline void multiply_swizzled(Sums&, SharedMatrix left, SharedMatrix right, bool add) {
    static_assert(L < LEFT && (sizeof(T) == 2 || !(LEFT_BY_STEPS || RIGHT_BY_STEPS)));
#if __CUDA_ARCH_FEAT_SM90_ALL
#define KILN_WGMMA(TYPES)                                                                        \
  asm volatile(                                                                                  \
      "{.reg .pred add; setp.ne.b32 add, %3, 0; wgmma.mma_async.sync.aligned.m64n" WGMMA_COLUMNS \
      "k16.f32" TYPES " {" WGMMA_SUMS("%0") "}, %1, %2, add, 1, 1, %4, %5;}" ::"n"(L),           \
      "l"(left.descriptor()), "l"(right.descriptor()), "r"(static_cast<u32>(add)),               \
      "n"(LEFT_BY_STEPS), "n"(RIGHT_BY_STEPS))
    if constexpr (sizeof(T) == 4)
      asm volatile(
          "{.reg .pred add; setp.ne.b32 add, %3, 0; wgmma.mma_async.sync.aligned.m64n" WGMMA_COLUMNS
          "k8.f32.tf32.tf32 {" WGMMA_SUMS("%0") "}, %1, %2, add, 1, 1;}" ::"n"(L),
          "l"(left.descriptor()), "l"(right.descriptor()), "r"(static_cast<u32>(add)));
    else if constexpr (is_bf16(T{}))
      KILN_WGMMA(".bf16.bf16");
    else
      KILN_WGMMA(".f16.f16");
#undef KILN_WGMMA
#endif
  }
  // Closes the current group, which holds all products since the last commit.
  device_inline void commit() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
  }
  // Waits until all but the newest NEWEST groups have completed; after wait<0>(), sums may be read.
  template <int NEWEST>
  device_inline void wait() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(NEWEST) : "memory");
#endif
  }
};
