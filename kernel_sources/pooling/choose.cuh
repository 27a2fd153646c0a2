// Finds the tap of a window that gets the gradient of its maximum: the first maximal one.
#pragma once

#include "pooling/tile.cuh"
#include "target/half_pairs.cuh"

constexpr bool SMALL = WINDOW_H * WINDOW_W * VECTOR <= 80;
constexpr int ROWS = SMALL ? WINDOW_H : 1,
              COLUMNS = SMALL || WINDOW_W < 4 ? WINDOW_W : 4;  // unrolled

// The access to a vector's channels: contiguous or, with PLANES, `plane` elements apart. `plane` is
// 0 if only one channel is left.
struct Access {
  bool aligned;
  offset_t plane;

  // `left`: number of channels from the first one on.
  device_inline static Access of(const void* tensor, i64 stride, int left) {
    return {VECTOR == 1 || PLANES || is_aligned<element_t, VECTOR>(tensor),
            left > 1 ? static_cast<offset_t>(stride) : 0};
  }
};
template <class T, int COUNT>
device_inline Pack<T, COUNT> load_channels(const T* from, const Access& access) {
  if constexpr (!PLANES) return load_pack<COUNT>(from, access.aligned);
  Pack<T, COUNT> pack;
  pack.element[0] = from[0], pack.element[COUNT - 1] = from[access.plane];
  return pack;
}

template <class T, int COUNT>
struct TapPairs {
  u32 pair[COUNT];

  device_inline TapPairs(const T* from, const Access& access) {
    if (STAGED && !PLANES && access.aligned) {  // words: halves would be taken apart and joined
      const auto words = *reinterpret_cast<const Pack<u32, COUNT>*>(from);
#pragma unroll
      for (int i = 0; i < COUNT; ++i) pair[i] = words.element[i];
      return;
    }
    const Pack<T, 2 * COUNT> pack = load_channels<T, 2 * COUNT>(from, access);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      pair[i] = pack_shorts(pack.element[2 * i].bits, pack.element[2 * i + 1].bits);
  }
};
struct TapValues {
  compute_t value[VECTOR];

  device_inline TapValues(const element_t* from, const Access& access) {
    const Pack<element_t, VECTOR> pack = load_channels<element_t, VECTOR>(from, access);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) value[i] = to_compute(pack.element[i]);
  }
};

// Calls visit(number, tap) for the taps of a window, in order or in REVERSE. `x` is the place of
// the image's first pixel in x or in its copy (stage.cuh). A tap beyond x's edge is replaced by its
// neighbor at the edge, which does not change the maximum.
template <class Tap, bool REVERSE, int UNROLL_H, int UNROLL_W, class Visit>
device_inline void for_taps(const element_t* x, const Access& access, const Window& window,
                            const Visit& visit) {
  // `last`: where the last window begins. Of most taps the compiler knows that they are inside.
  const auto inside = [](const Taps& taps, int tap, int pad, int last, int size) {
    if (!INSIDE && tap < pad && tap < taps.begin) return taps.begin;
    return !INSIDE && last + tap >= size && tap >= taps.end ? taps.end - 1 : tap;
  };
  const element_t* const first = x + (static_cast<offset_t>(window.h.first) * TAP_STRIDE_H +
                                      static_cast<offset_t>(window.w.first) * TAP_STRIDE_W);
#pragma unroll UNROLL_H
  for (int i = 0; i < WINDOW_H; ++i) {
    const int r = inside(window.h, REVERSE ? WINDOW_H - 1 - i : i, PAD_H,
                         (OUT_H - 1) * STRIDE_H - PAD_H, IN_H);
#pragma unroll UNROLL_W
    for (int j = 0; j < WINDOW_W; ++j) {
      const int s = inside(window.w, REVERSE ? WINDOW_W - 1 - j : j, PAD_W,
                           (OUT_W - 1) * STRIDE_W - PAD_W, IN_W);
      const element_t* const at = first + (static_cast<offset_t>(r) * TAP_STRIDE_H +
                                           static_cast<offset_t>(s) * TAP_STRIDE_W);
      visit(r * WINDOW_W + s, Tap(at, access));
    }
  }
}

// For channels whose maximum is NaN, finds the first tap that is NaN.
device_inline void choose_nan(const element_t* x, const Access& access, const Window& window,
                              const bool (&nan)[VECTOR], int (&tap)[VECTOR]) {
  for_taps<TapValues, true, 1, 1>(x, access, window, [&](int number, const TapValues& of) {
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
      if (nan[i] && of.value[i] != of.value[i]) tap[i] = number;
  });
}

// Finds each channel's first maximal tap. A single channel's few taps stay in registers; with
// several channels, taps that are not staged are read again from the cache.
device_inline void choose_taps(const element_t* x, const Access& access, const Window& window,
                               Pack<unsigned char, VECTOR>& choice) {
  compute_t best[VECTOR];
  int tap[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) best[i] = -math_infinity<compute_t>();
  for_taps<TapValues, false, ROWS, COLUMNS>(x, access, window, [&](int, const TapValues& of) {
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
      best[i] = PROPAGATE_NAN ? math_max_nan(best[i], of.value[i]) : math_max(best[i], of.value[i]);
  });
  if constexpr (VECTOR > 1 && !STAGED) x = opaque(x);
  bool nan[VECTOR], any = false;
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) tap[i] = NO_TAP, nan[i] = best[i] != best[i], any |= nan[i];
  for_taps<TapValues, true, ROWS, COLUMNS>(x, access, window, [&](int number, const TapValues& of) {
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
      if (of.value[i] == best[i]) tap[i] = number;
  });
  if (any) choose_nan(x, access, window, nan, tap);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) choice.element[i] = static_cast<unsigned char>(tap[i]);
}
template <class T, int COUNT>
device_inline void choose_taps(const T* x, const Access& access, const Window& window,
                               Pack<u32, COUNT>& choice) {
  using Pairs = TapPairs<T, COUNT>;
  u32(&taps)[COUNT] = choice.element;
  constexpr u32 LOWEST = is_bf16(T{}) ? 0xff80ff80u : 0xfc00fc00u;  // -infinity, twice
  u32 best[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) best[i] = LOWEST, taps[i] = NO_TAP * 0x10001u;
  for_taps<Pairs, false, ROWS, COLUMNS>(x, access, window, [&](int, const Pairs& of) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) best[i] = larger_pair<T, PROPAGATE_NAN>(best[i], of.pair[i]);
  });
  if constexpr (COUNT > 1 && !STAGED) x = opaque(x);
  for_taps<Pairs, true, ROWS, COLUMNS>(x, access, window, [&](int number, const Pairs& of) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const u32 chosen = equal_pair<T>(of.pair[i], best[i]);
      taps[i] = (taps[i] & ~chosen) | (static_cast<u32>(number) * 0x10001u & chosen);
    }
  });
  bool any = false;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) any |= equal_pair<T>(best[i], best[i]) != ~0u;
  if (!any) return;
  bool nan[VECTOR];
  int tap[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    const compute_t value = to_compute(half_of<T>(best[i / 2], i % 2));
    nan[i] = value != value;
    tap[i] = static_cast<int>(taps[i / 2] >> i % 2 * 16 & 0xffffu);
  }
  choose_nan(x, access, window, nan, tap);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    taps[i] = static_cast<u32>(tap[2 * i]) | static_cast<u32>(tap[2 * i + 1]) << 16;
}
device_inline Choice choose(const element_t* x, const Access& access, const Window& window) {
  Choice choice;
  choose_taps(x, access, window, choice);
  return choice;
}
