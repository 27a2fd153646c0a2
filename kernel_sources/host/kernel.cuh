// What every kernel uses of the hardware, on the host device: see kernel_sources/cuda/kernel.cuh.
// Each CUDA thread is a fiber; a barrier or shuffle suspends it until the others have arrived.
#pragma once

#include "host/runtime.h"

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

#define device_inline inline

extern "C" int printf(const char* format, ...);  // built into CUDA C++

// Points to a function that returns a thread-local variable of the library. A thread-local variable
// of this shared object would be allocated when a thread first uses it, and the process would end
// if there were no memory for that.
static kiln::host::CurrentContext* kiln_current;
// The result does not change while a fiber runs. Declaring the function const tells the compiler
// so, and it need not call it again.
__attribute__((const, noinline)) static kiln::host::Context* current_context() {
  return kiln_current();
}
#define kiln_context (current_context())

#ifdef LATE_BYTES
constexpr u32 parameters_at = LATE_BYTES;
#else
constexpr u32 parameters_at = 0;
#endif

#define KILN_KERNEL(name, THREADS, MIN_BLOCKS, ParamsStruct, p)                            \
  static void name##_thread(const ParamsStruct& p);                                        \
  static void name##_start(const void* parameters) {                                       \
    const char* const own = static_cast<const char*>(parameters) + parameters_at;          \
    name##_thread(*reinterpret_cast<const ParamsStruct*>(own));                            \
  }                                                                                        \
  static_assert((THREADS) > 0 && (THREADS) <= 1024 && (MIN_BLOCKS) > 0);                   \
  extern "C" __attribute__((visibility("default"))) const kiln::host::KernelEntry name = { \
      name##_start, parameters_at + sizeof(ParamsStruct), THREADS, &kiln_current};         \
  static void name##_thread(const ParamsStruct& p)

device_inline u32 thread_x() { return kiln_context->thread_index[0]; }
device_inline u32 thread_y() { return kiln_context->thread_index[1]; }
device_inline u32 thread_z() { return kiln_context->thread_index[2]; }
device_inline u32 block_x() { return kiln_context->block_index[0]; }
device_inline u32 block_y() { return kiln_context->block_index[1]; }
device_inline u32 block_z() { return kiln_context->block_index[2]; }
device_inline u32 grid_x() { return kiln_context->grid_size[0]; }
device_inline u32 grid_y() { return kiln_context->grid_size[1]; }
device_inline u32 grid_z() { return kiln_context->grid_size[2]; }

device_inline u32 mulhi(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
device_inline u64 mulhi(u64 a, u64 b) {
  return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64);
}

template <class T>
device_inline T* opaque(T* pointer) {
  return pointer;
}
template <class T>
device_inline T from_here(T value) {
  return value;
}

device_inline void block_barrier() { kiln_context->block_barrier(kiln_context); }
device_inline void warp_barrier() { kiln_context->warp_barrier(kiln_context); }

template <class T>
device_inline T warp_shuffle(T v, u32 lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  u64 bits = 0;
  __builtin_memcpy(&bits, &v, sizeof(T));
  bits = kiln_context->warp_shuffle(kiln_context, bits, lane % 32);
  __builtin_memcpy(&v, &bits, sizeof(T));
  return v;
}
template <class T>
device_inline T warp_shuffle_xor(T v, u32 mask) {
  return warp_shuffle(v, kiln_context->lane(kiln_context) ^ mask);
}
template <class T>
device_inline T warp_shuffle_down(T v, u32 delta) {
  const u32 lane = kiln_context->lane(kiln_context);
  return warp_shuffle(v, lane + delta < 32 ? lane + delta : lane);
}

template <class T>
device_inline T kept(T value) {
  return value;
}
