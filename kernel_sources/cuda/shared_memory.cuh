// The block's dynamic shared memory. kernel_sources/host/shared_memory.cuh defines the same names
// for the host device.
#pragma once

#include "target/kernel.cuh"

// The array of COUNT elements that begins `offset` bytes into the block's dynamic shared memory.
// `offset` must be a multiple of 16, and no two arrays of a kernel may overlap. The contents are
// undefined until written. The memory itself is aligned to 1024 bytes.
template <class T, int COUNT>
device_inline T* shared_array(u32 offset) {
  static_assert(COUNT > 0 && alignof(T) <= 16);
  extern __shared__ __align__(1024) unsigned char kiln_shared_memory[];
  return reinterpret_cast<T*>(kiln_shared_memory + offset);
}

// Returns `place`, but makes ptxas keep its address in a register; see kept() in kernel.cuh.
template <class T>
device_inline const T* kept_shared(const T* place) {
  const u32 address = kept(static_cast<u32>(__cvta_generic_to_shared(place)));
  return static_cast<const T*>(__cvta_shared_to_generic(address));
}
