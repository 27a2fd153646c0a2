// Products of matrices by a warpgroup, four warps side by side, on the tensor cores (sm_90a): while
// they run, the warps go on. kernel_sources/host/wgmma.cuh gives the same names.
//
// The text of the instruction depends on the number of columns: the generator writes WGMMA_COLUMNS
// and WGMMA_SUMS(l), the names of the sums (sum_registers.cuh).
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"

// A matrix in shared memory, reduction x rows or columns, as wgmma reads it without a swizzle: 16
// bytes of the reduction, those of 8 columns one behind the other; k_step bytes from there to the
// next 16 of the reduction, n_step to the next 8 columns. Or, of 16 bits, the other way round: 8
// columns in 16 bytes, those of 8 steps of the reduction one behind the other; k_step bytes to the
// next 8 of them, n_step to the next 8 columns. All multiples of 16. ("Matrix descriptor" in the
// PTX ISA: leading and stride dimension byte offset.)
struct SharedMatrix {
  u32 low, high;  // of the descriptor

  device_inline SharedMatrix(const void* first, int k_step, int n_step)
      : low(place(first) | static_cast<u32>(k_step >> 4) << 16),
        high(static_cast<u32>(n_step >> 4)) {}
  // A matrix as a load with a swizzle has left it, in rows of LINE bytes (128, 64 or 32) whose
  // places of 16 bytes are permuted by bits of their address from bit 7 on; so `first` may be any
  // row of it. Rows are those of the matrix (or columns), LINE bytes of the reduction each, the
  // next 32 bytes of which lie 32 bytes on; `eight_rows` bytes from each 8 rows to the next. Or
  // rows are steps of the reduction, of LINE bytes of rows of the matrix; `blocks` bytes then to
  // the next of these.
  template <int LINE>
  device_inline static SharedMatrix swizzled(const void* first, int eight_rows, int blocks = 16) {
    static_assert(LINE == 128 || LINE == 64 || LINE == 32);
    SharedMatrix matrix(first, blocks, eight_rows);
    matrix.high |= (LINE == 128 ? 1u : LINE == 64 ? 2u : 3u) << 30;
    return matrix;
  }
  device_inline SharedMatrix moved(int bytes) const {
    SharedMatrix other = *this;
    other.low += static_cast<u32>(bytes >> 4);  // an address stays one, of 14 bits
    return other;
  }
  device_inline u64 descriptor() const { return static_cast<u64>(high) << 32 | low; }

 private:
  // In 16 bytes. In a cluster a block's number stands above the 18 bits that are the address.
  device_inline static u32 place(const void* at) {
    return (static_cast<u32>(__cvta_generic_to_shared(at)) & 0x3ffffu) >> 4;
  }
};

// What this thread has written to shared memory, the tensor cores may read after a barrier.
device_inline void fence_proxy_async() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Products on their way into PRODUCTS x 8 columns of sums; rows are 16 of each warp, laid out among
// its lanes as mma_16x8x8 and mma_16x8x16 have them. A group's products may go into LEFT such sums,
// each with left operands of its own.
template <class T, int LEFT, int PRODUCTS>
class WarpgroupProducts {
 public:
  // Before the first of a group: orders what the thread did to sums and to left operands.
  device_inline void begin() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  }
  // Sums `L` += left right, over 32 bytes of the reduction; without `add`, they are left right.
  // Until wait() has let the product's group pass, sums and left belong to it, and what `right` is
  // of shared memory stays as it is. With COLUMNS_INNER, of 16 bits, 16 bytes of it are 8 columns.
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
  // The same of a left operand in shared memory, the warpgroup's 64 rows where `right` has columns;
  // with LEFT_ROWS_INNER, of 16 bits, 8 rows in 16 bytes.
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
  // The same of two swizzled matrices: whether steps of the reduction are the rows of the left one,
  // and of the right one, which 16 bits alone allow.
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
  // Closes a group: all since the last commit.
  device_inline void commit() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
  }
  // Waits until all but the newest NEWEST groups are done; with 0, sums may be read.
  template <int NEWEST>
  device_inline void wait() {
#if __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(NEWEST) : "memory");
#endif
  }
};
