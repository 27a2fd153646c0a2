// What every kernel needs of the hardware: its entry, its coordinates, barriers and shuffles.
// kernel_sources/host/kernel.cuh gives the same names on the host device.
#pragma once

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

#define device_inline __device__ __forceinline__

// Defines the kernel `name`, which takes one struct by value:
//   KILN_KERNEL(scale, 256, 2, ScaleParams, p) { ... p.x ... }
// At most THREADS threads a block; registers are limited so that MIN_BLOCKS blocks fit on a
// multiprocessor. The struct stays in constant memory and must not be written to.
#ifndef LATE_BYTES
#define KILN_KERNEL(name, THREADS, MIN_BLOCKS, ParamsStruct, p)     \
  extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) \
      name(const __grid_constant__ ParamsStruct p)
#else  // late constants come first (target/late.cuh)
#define KILN_KERNEL(name, THREADS, MIN_BLOCKS, ParamsStruct, p)     \
  struct name##_parameters {                                        \
    u64 late[LATE_BYTES / 8];                                       \
    ParamsStruct own;                                               \
  };                                                                \
  device_inline void name##_body(const ParamsStruct& p);            \
  extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) \
      name(const __grid_constant__ name##_parameters parameters) {  \
    name##_body(parameters.own);                                    \
  }                                                                 \
  device_inline void name##_body(const ParamsStruct& p)
#endif

device_inline u32 thread_x() { return threadIdx.x; }
device_inline u32 thread_y() { return threadIdx.y; }
device_inline u32 thread_z() { return threadIdx.z; }
device_inline u32 block_x() { return blockIdx.x; }
device_inline u32 block_y() { return blockIdx.y; }
device_inline u32 block_z() { return blockIdx.z; }
device_inline u32 grid_x() { return gridDim.x; }
device_inline u32 grid_y() { return gridDim.y; }
device_inline u32 grid_z() { return gridDim.z; }

// The upper half of a * b.
device_inline u32 mulhi(u32 a, u32 b) { return __umulhi(a, b); }
device_inline u64 mulhi(u64 a, u64 b) { return __umul64hi(a, b); }

// The same pointer, of unknown origin to the compiler: it will add to it as written, instead of
// taking the sum that made it apart and adding up every element's address from the beginning.
template <class T>
device_inline T* opaque(T* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

// The same number, of which the compiler knows nothing before this place: what follows from it is
// worked out here, and not ahead of a loop, through which it would take registers.
template <class T>
device_inline T from_here(T value) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}

// Every thread of the block must arrive; orders its memory accesses within the block.
device_inline void block_barrier() { __syncthreads(); }

// The same for the 32 threads of a warp.
device_inline void warp_barrier() { __syncwarp(); }

// Exchanges of a 32-bit or 64-bit arithmetic value between the lanes of a warp; all 32 must take
// part. xor: from lane ^ mask. down: from lane + delta, or one's own value past lane 31. Plain:
// from lane `lane` (modulo 32).
template <class T>
device_inline T warp_shuffle_xor(T v, u32 mask) {
  return __shfl_xor_sync(0xffffffffu, v, static_cast<int>(mask));
}
template <class T>
device_inline T warp_shuffle_down(T v, u32 delta) {
  return __shfl_down_sync(0xffffffffu, v, delta);
}
template <class T>
device_inline T warp_shuffle(T v, u32 lane) {
  return __shfl_sync(0xffffffffu, v, static_cast<int>(lane));
}

// The same number, which the assembler then keeps in a register, instead of working it out anew
// from the thread's number wherever it is needed. All 32 lanes must take part.
template <class T>
device_inline T kept(T value) {
  return warp_shuffle(value, threadIdx.x % 32);
}
