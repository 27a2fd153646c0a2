// A thread's part of a row: where it lies, its elements, and their formulas. rows.cu has the
// kernel.
//
// JOIN 0: kept axes number an image's rows. Else they are its channels, rows are JOIN neighboring
// channels, and a block has CHUNK vectors of channels, which are whole rows.
#pragma once

#include "normalization/element.cuh"
#include "normalization/running_totals.cuh"

using P = STRIDES(P);  // of scale and bias
using S = STRIDES(S);  // of mean and deviation, where JOIN is 0

enum Stage { ALL_AT_ONCE, TOTALS_ALONE, RESULTS_ALONE };
constexpr bool BY_CHANNEL = JOIN > 0;
constexpr int GROUP = BY_CHANNEL ? JOIN : 1;
constexpr bool READS_RESIDUAL = HAS_RESIDUAL && (!BACKWARD || ACTIVATION != Act::IDENTITY);

// Bytes of shared memory, in multiples of 16.
device_inline constexpr u32 in_words(u32 bytes) { return (bytes + 15) / 16 * 16; }

struct Row {
  i64 image;
  index_t kept;
  index_t first = 0;  // BY_CHANNEL: that of the block
  bool present;       // threads beyond the last one take the first one and store nothing
  Place place;
  device_inline Row(const NormalizationParams& params, u32 number) {
    if constexpr (BY_CHANNEL) {
      const u32 chunk = number % CHUNKS;
      image = number / CHUNKS;
      first = static_cast<index_t>(chunk) * CHUNK;
      present = thread_result() < CHUNK && first + thread_result() < KEPT;
      kept = first + (present ? thread_result() : 0);
    } else {
      const u64 result = static_cast<u64>(number) * RESULTS + thread_result();
      const u64 n = DIVIDE(ROWS_DIV_KEPT, result);
      present = n < static_cast<u64>(params.images);
      image = present ? static_cast<i64>(n) : 0;
      kept = present ? static_cast<index_t>(result - n * KEPT) : 0;
    }
    place = kept_place(kept);
  }
  // The row of a lane among the block's; BY_CHANNEL.
  device_inline static int group_of(int lane) { return (thread_result() * LANES + lane) / GROUP; }
  // Where the mean of a lane is.
  device_inline i64 statistic(int lane) const {
    if constexpr (BY_CHANNEL) return image * (KEPT * LANES / GROUP) + (kept * LANES + lane) / GROUP;
    return image * S::IMAGE + S::kept(place) + lane * S_LANE;
  }
};

// The element around which a lane's moments are taken: the first one of its row.
struct Shift {
  compute_t value[LANES];
  device_inline Shift(const NormalizationParams& params, const Row& row) {
    const element_t* const x = static_cast<const element_t*>(params.x) + row.image * X::IMAGE;
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      if constexpr (!CENTERED || BACKWARD)
        value[i] = 0;
      else if constexpr (BY_CHANNEL)
        value[i] = to_compute(
            x[static_cast<i64>((row.kept * LANES + i) / GROUP * GROUP) * (X_STRIDE_K3 / LANES)]);
      else
        value[i] = to_compute(x[X::kept(row.place) + i]);
    }
  }
};

// Mean and inverse deviation of a thread's lanes.
struct Statistics {
  compute_t mean[LANES], deviation[LANES];
};

// Scale and bias of a vector's elements: numbers of neighboring channels, or one for all.
constexpr int NUMBERS = P_LANE == 0 ? 1 : VECTOR;
constexpr bool NUMBERS_STAY = P_STRIDE_C0 == 0 && P_STRIDE_C1 == 0 && P_STRIDE_C2 == 0 &&
                              P_STRIDE_C3 == 0 && (P_LANE == 0 || !INNER);
struct Numbers {
  compute_t scale[NUMBERS], bias[NUMBERS];
  device_inline void load(const NormalizationParams& params, i64 from, bool aligned) {
    constexpr int WIDTH = NUMBERS < LARGEST_WORD ? NUMBERS : LARGEST_WORD;
#pragma unroll
    for (int i = 0; i < NUMBERS; i += WIDTH) {
      Pack<compute_t, WIDTH> scales, biases;
      if constexpr (HAS_SCALE)
        scales = load_pack<WIDTH>(static_cast<const compute_t*>(params.scale) + from + i, aligned);
      if constexpr (HAS_BIAS)
        biases = load_pack<WIDTH>(static_cast<const compute_t*>(params.bias) + from + i, aligned);
#pragma unroll
      for (int j = 0; j < WIDTH; ++j) {
        scale[i + j] = HAS_SCALE ? scales.element[j] : compute_t(1);
        bias[i + j] = HAS_BIAS ? biases.element[j] : compute_t(0);
      }
    }
  }
};

// What a row's totals give: forward its mean and deviation; backward the means of h and of
// h (x - mean) s^2.
struct Outcome {
  compute_t first, second;
};
device_inline Outcome outcome_of(const NormalizationParams& params, compute_t first,
                                 compute_t second, compute_t shift, compute_t deviation) {
  const compute_t share = static_cast<compute_t>(params.share);
  if constexpr (BACKWARD) return {first * share, second * share * deviation * deviation};
  // An infinity among the elements makes both NaN.
  const compute_t mean = CENTERED ? (second != second ? second : shift + first) : compute_t(0);
  const compute_t variance = math_fma(second, share, static_cast<compute_t>(params.epsilon));
  return {mean, compute_t(1) / math_sqrt(variance)};
}
device_inline void store_statistics(const NormalizationParams& params, i64 at, Outcome row) {
  if constexpr (CENTERED) static_cast<compute_t*>(params.mean)[at] = row.first;
  static_cast<compute_t*>(params.deviation)[at] = row.second;
}

// What stages leave in the workspace: the totals of blocks, [slot][part][2], where a slot is a
// lane's among all images', and two numbers a row: forward what its moments are around, backward
// its outcome.
struct Partials {
  compute_t* base;
  u64 slots;
  u32 parts;
  device_inline explicit Partials(const NormalizationParams& params)
      : base(static_cast<compute_t*>(params.partials)),
        slots(static_cast<u64>(params.images) * KEPT * LANES),
        parts(params.parts) {}
  device_inline compute_t* totals(u64 slot, u32 part) const {
    return base + (slot * parts + part) * 2;
  }
  device_inline compute_t* row(u64 number) const { return base + (slots * parts + number) * 2; }
};

// What is summed up of a thread's channels over all rows while results are stored: nothing, unless
// rows_gradient.cu asks.
struct NoColumns {
  device_inline void add(int, int, compute_t, compute_t) {}
};

// Vectors of a row, in the order of a thread's walk.
template <int COUNT>
struct Vectors {
  Pack<element_t, VECTOR> x[COUNT], dy[COUNT], residual[COUNT];
};

// The tensors of a thread's part of a row.
struct Part {
  const NormalizationParams& params;
  const element_t *x, *dy, *residual;
  element_t *out, *dresidual;
  i64 numbers;  // of the row's first vector
  bool aligned, numbers_aligned;
  Numbers staying;
  Coefficients<compute_t> coef;
  device_inline Part(const NormalizationParams& all, const Row& row)
      : params(all),
        x(static_cast<const element_t*>(all.x) + row.image * X::IMAGE + X::kept(row.place)),
        dy(static_cast<const element_t*>(all.dy) + row.image * DY::IMAGE + DY::kept(row.place)),
        residual(static_cast<const element_t*>(all.residual) + row.image * R::IMAGE +
                 R::kept(row.place)),
        out(static_cast<element_t*>(all.out) + row.image * Out::IMAGE + Out::kept(row.place)),
        dresidual(static_cast<element_t*>(all.dresidual) + row.image * DR::IMAGE +
                  DR::kept(row.place)),
        numbers(P::kept(row.place)),
        aligned(is_aligned<element_t, VECTOR>(all.x) && is_aligned<element_t, VECTOR>(all.out) &&
                (!BACKWARD || is_aligned<element_t, VECTOR>(all.dy)) &&
                (!HAS_RESIDUAL || (is_aligned<element_t, VECTOR>(all.residual) &&
                                   is_aligned<element_t, VECTOR>(all.dresidual)))),
        numbers_aligned(is_aligned<compute_t, LARGEST_WORD>(all.scale) &&
                        is_aligned<compute_t, LARGEST_WORD>(all.bias)),
        coef(coefficients_of<compute_t>(all)) {
    if constexpr (NUMBERS_STAY) staying.load(all, numbers, numbers_aligned);
  }

  // COUNT vectors from number `at` on, each `step` further, or as many as are left.
  template <int COUNT, bool WHOLE>
  device_inline void load(Vectors<COUNT>& to, index_t at, index_t step, i64 left) const {
    const auto one = [&](int u, index_t i) {
      to.x[u] = load_pack<VECTOR>(X::at(x, i, 0), aligned);
      if constexpr (BACKWARD) to.dy[u] = load_pack<VECTOR>(DY::at(dy, i, 0), aligned);
      if constexpr (READS_RESIDUAL)
        to.residual[u] = load_pack<VECTOR>(R::at(residual, i, 0), aligned);
    };
#pragma unroll
    for (int u = 0; u < COUNT; ++u)
      if (WHOLE || u < left) one(u, at + static_cast<index_t>(u) * step);
  }

  device_inline Numbers numbers_of(index_t at) const {
    if constexpr (NUMBERS_STAY) return staying;
    Numbers out;
    out.load(params, numbers + P::combined(at), numbers_aligned);
    return out;
  }

  // The activation's argument of element i of a vector.
  device_inline compute_t argument(compute_t value, int i, const Numbers& of,
                                   const Statistics& statistics, compute_t added) const {
    const int lane = INNER ? 0 : i, number = P_LANE == 0 ? 0 : i;
    const compute_t p = math_fma(value - statistics.mean[lane],
                                 of.scale[number] * statistics.deviation[lane], of.bias[number]);
    return HAS_RESIDUAL ? p + added : p;
  }
  // The gradient of that argument.
  device_inline compute_t gradient(compute_t of_y, compute_t value, int i, const Numbers& of,
                                   const Statistics& statistics, compute_t added) const {
    if constexpr (ACTIVATION == Act::IDENTITY) return of_y;
    return of_y * slope_at(argument(value, i, of, statistics, added), coef);
  }

  // Backward: adds to a row's sums of h and of h (x - mean), h = g * scale; BY_CHANNEL of g, for a
  // channel has one scale.
  template <int COUNT, bool WHOLE>
  device_inline void add(Totals& totals, const Vectors<COUNT>& from, index_t at, index_t step,
                         const Statistics& statistics, i64 left) const {
    compute_t sum[LANES], products[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) sum[i] = products[i] = 0;
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (!WHOLE && u >= left) continue;
      const Numbers of = numbers_of(at + static_cast<index_t>(u) * step);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const int lane = INNER ? 0 : i;
        const compute_t value = to_compute(from.x[u].element[i]);
        const compute_t added =
            READS_RESIDUAL ? to_compute(from.residual[u].element[i]) : compute_t(0);
        compute_t h = gradient(to_compute(from.dy[u].element[i]), value, i, of, statistics, added);
        if constexpr (HAS_SCALE && !BY_CHANNEL) h *= of.scale[P_LANE == 0 ? 0 : i];
        sum[lane] += h;
        products[lane] = math_fma(h, value - statistics.mean[lane], products[lane]);
      }
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) totals.first[i] += sum[i], totals.second[i] += products[i];
  }

  // Stores y of the vectors, or dx and dresidual. Backward: `means` are those of h, and of
  // h (x - mean) s^2; `columns` takes g and g (x - mean) s of each element.
  template <int COUNT, bool WHOLE, class Columns>
  device_inline void store(const Vectors<COUNT>& from, index_t at, index_t step,
                           const Statistics& statistics, const Totals& means, i64 left,
                           Columns& columns) const {
    const compute_t alpha = static_cast<compute_t>(params.alpha);
    const compute_t beta = static_cast<compute_t>(params.beta);
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (!WHOLE && u >= left) continue;
      const index_t vector = at + static_cast<index_t>(u) * step;
      const Numbers of = numbers_of(vector);
      compute_t values[VECTOR], gradients[VECTOR];
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const int lane = INNER ? 0 : i;
        const compute_t value = to_compute(from.x[u].element[i]);
        const compute_t added =
            READS_RESIDUAL ? to_compute(from.residual[u].element[i]) : compute_t(0);
        if constexpr (BACKWARD) {
          const compute_t g =
              gradient(to_compute(from.dy[u].element[i]), value, i, of, statistics, added);
          gradients[i] = g;
          columns.add(u, i, g, (value - statistics.mean[lane]) * statistics.deviation[lane]);
          compute_t inner = HAS_SCALE ? g * of.scale[P_LANE == 0 ? 0 : i] : g;
          if constexpr (CENTERED) inner -= means.first[lane];
          inner = math_fma(statistics.mean[lane] - value, means.second[lane], inner);
          values[i] = alpha * (statistics.deviation[lane] * inner);
        } else {
          values[i] =
              alpha * activate<ACTIVATION, BRIEF>(argument(value, i, of, statistics, added), coef);
        }
      }
      element_t* const to = Out::at(out, vector, 0);
      if (beta != compute_t(0)) {
        compute_t before[VECTOR];
        load_vector<VECTOR>(to, aligned, before);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] += beta * before[i];
      }
      store_vector<VECTOR>(to, aligned, values);
      if constexpr (BACKWARD && HAS_RESIDUAL)
        store_vector<VECTOR>(DR::at(dresidual, vector, 0), aligned, gradients);
    }
  }
};
