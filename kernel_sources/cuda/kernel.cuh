// What every kernel uses of the hardware: its entry point, its coordinates, barriers and shuffles.
// kernel_sources/host/kernel.cuh defines the same names for the host device.
#pragma once

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

#define device_inline __device__ __forceinline__

// Defines the kernel `name`, which takes one struct by value:
//   KILN_KERNEL(scale, 256, 2, ScaleParams, p) { ... p.x ... }
// A block has at most THREADS threads; the compiler limits registers so that MIN_BLOCKS blocks fit
// on a multiprocessor. The struct stays in constant memory and must not be written to.
#ifndef LATE_BYTES
#define KILN_KERNEL(name, THREADS, MIN_BLOCKS, ParamsStruct, p)     \
  extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) \
      name(const __grid_constant__ ParamsStruct p)
#else  // late constants precede the struct (target/late.cuh)
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

// Returns `pointer`, but hides its origin from the compiler. The compiler then adds offsets to it
// as written, instead of undoing the sum that it came from and computing every element's address
// from the base.
template <class T>
device_inline T* opaque(T* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

// Returns `value`, but hides it from the compiler up to this place. What depends on it is then
// computed here, and not ahead of a loop through which it would occupy registers.
template <class T>
device_inline T from_here(T value) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}

// A barrier at which every thread of the block must arrive. It orders their memory accesses within
// the block.
device_inline void block_barrier() { __syncthreads(); }

// Like block_barrier(), for the 32 threads of a warp.
device_inline void warp_barrier() { __syncwarp(); }

// Exchange a 32-bit or 64-bit arithmetic value between the lanes of a warp; all 32 lanes must take
// part. warp_shuffle_xor() reads from lane ^ mask; warp_shuffle_down() from lane + delta, or
// returns the own value if that is past lane 31; warp_shuffle() from `lane` modulo 32.
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

// Returns `value`, but makes ptxas keep it in a register instead of computing it again from the
// thread index at every use. All 32 lanes must take part.
template <class T>
device_inline T kept(T value) {
  return warp_shuffle(value, threadIdx.x % 32);
}
