// Loads and stores of COUNT contiguous elements, with conversion to and from the compute type C: in
// one access if the caller says that they are aligned to their total size, else one by one.
#pragma once

#include "common/compute_type.cuh"
#include "target/vector_access.cuh"

template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT) Pack {
  T element[COUNT];
};

// Every type can be read as f64. All conversions round once, to nearest, ties to even.
template <class C, class T>
device_inline C convert_in(T x) {
  return static_cast<C>(to_compute(x));
}
template <class T, class C>
device_inline T convert_out(C x) {
  if constexpr (sizeof(C) == 8 && sizeof(T) == 2) return from_compute<T>(narrowed(x));
  return from_compute<T>(static_cast<typename compute_of<T>::type>(x));
}

// Loads without conversion.
template <int COUNT, class T>
device_inline Pack<T, COUNT> load_pack(const T* from, bool aligned) {
  if (COUNT > 1 && aligned) return *reinterpret_cast<const Pack<T, COUNT>*>(from);
  Pack<T, COUNT> pack;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) pack.element[i] = from[i];
  return pack;
}

template <int COUNT, class T, class C>
device_inline void load_vector(const T* from, bool aligned, C (&out)[COUNT]) {
  if (COUNT > 1 && aligned) {
    const Pack<T, COUNT> pack = *reinterpret_cast<const Pack<T, COUNT>*>(from);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) out[i] = convert_in<C>(pack.element[i]);
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) out[i] = convert_in<C>(from[i]);
  }
}

template <int COUNT, class T, class C>
device_inline void store_vector(T* to, bool aligned, const C (&values)[COUNT]) {
  Pack<T, COUNT> pack;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) pack.element[i] = convert_out<T>(values[i]);
  if (COUNT > 1 && aligned) {
    if constexpr (sizeof(T) == 2) {
      u32 words[COUNT / 2 > 0 ? COUNT / 2 : 1];
#pragma unroll
      for (int i = 0; i < COUNT / 2; ++i)
        words[i] = pack.element[2 * i].bits | static_cast<u32>(pack.element[2 * i + 1].bits) << 16;
      store_words(to, words);
    } else {
      *reinterpret_cast<Pack<T, COUNT>*>(to) = pack;
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) to[i] = pack.element[i];
  }
}

template <class T, int COUNT>
device_inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<u64>(pointer) % (sizeof(T) * COUNT) == 0;
}
