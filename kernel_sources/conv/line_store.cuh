// A tile's sums on their way out: lines of the thread's sums to places in the output, whole where
// elements of a line lie side by side.
#pragma once

#include "conv/epilogue.cuh"
#include "conv/gather_params.h"
#include "conv/output_place.cuh"
#include "conv/tile_sums.cuh"

// Of the rows from `row` of the whole output on, and the images from `image` on.
device_inline Epilogue epilogue_at(const GatherParams& params, i64 image, i64 row, int phase) {
  Epilogue epilogue;
  epilogue.out = static_cast<element_t*>(params.out) + image * OUT_STRIDE_N + row * OUT_STRIDE_ROW +
                 OUT_FIRST[phase];
  epilogue.z = static_cast<const element_t*>(params.z) + image * Z_STRIDE_N + row * Z_STRIDE_ROW +
               (RESIDUAL ? 0 : OUT_FIRST[phase]);
  epilogue.bias = static_cast<const element_t*>(params.bias) + row * BIAS_STRIDE;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coefficient = static_cast<compute_t>(params.coefficient);
  return epilogue;
}

// Where a thread's sums go: a line has a place of its own, and its elements follow at offsets that
// are the same for all lines.
//
// Pixels: of the tile, by their number in it: inside(n), whether there is one; at(n), its place, or
// that of some pixel of the tile if there is none.
template <class Pixels>
struct LineStore {
  // Pixels of a run that is stored whole lie side by side: one offset is all that is needed.
  static constexpr int RUN = OUTPUT_VECTOR ? ACCESS : 1;

  Position position;
  int first_row;
  Pixels pixels;
  out_offset_t runs[LINES_ALONG_M ? 1 : LINE / RUN];  // of pixels
  u32 valid;  // bit i: element i of a line lies in the output

  device_inline LineStore(Position at, int row, const Pixels& of_tile)
      : position(at), first_row(row), pixels(of_tile), valid(0) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) {
      const bool inside = LINES_ALONG_M ? row_of(i) < ROWS : pixels.inside(pixel_of(i));
      valid |= static_cast<u32>(inside) << i;
    }
    if constexpr (!LINES_ALONG_M) {
#pragma unroll
      for (int i = 0; i < LINE; i += RUN) {
        runs[i / RUN] = output_offset(pixels.at(pixel_of(i)));
      }
    }
  }

  device_inline out_offset_t along(int i) const {
    if constexpr (LINES_ALONG_M) return static_cast<out_offset_t>(row_of(i)) * OUT_STRIDE_ROW;
    return runs[i / RUN] + i % RUN;
  }

  // Of element i of a line, or of line i.
  device_inline int row_of(int i) const { return first_row + position.m + row_step(i); }
  device_inline int pixel_of(int i) const { return position.n + column_step(i); }

  device_inline out_offset_t z_offset(int row, int pixel, out_offset_t at) const {
    if constexpr (Z_LIKE_OUT) return at;
    return static_cast<out_offset_t>(row) * Z_STRIDE_ROW + residual_offset(pixels.at(pixel));
  }

  device_inline void store(const compute_t (&line)[LINE], int index, const Epilogue& epilogue,
                           bool aligned) const {
    out_offset_t base;
    compute_t line_bias = 0;
    if constexpr (LINES_ALONG_M) {
      if (!pixels.inside(pixel_of(index))) return;
      base = output_offset(pixels.at(pixel_of(index)));
    } else {
      if (row_of(index) >= ROWS) return;
      base = static_cast<out_offset_t>(row_of(index)) * OUT_STRIDE_ROW;
      line_bias = epilogue.bias_of(row_of(index));
    }
#pragma unroll
    for (int run = 0; run < LINE; run += ACCESS) {
      constexpr u32 WHOLE = (1u << ACCESS) - 1;
      compute_t bias[ACCESS];
#pragma unroll
      for (int i = 0; i < ACCESS; ++i) {
        if constexpr (LINES_ALONG_M)
          bias[i] = valid >> (run + i) & 1 ? epilogue.bias_of(row_of(run + i)) : compute_t(0);
        else
          bias[i] = line_bias;
      }
      if (OUTPUT_VECTOR && aligned && (valid >> run & WHOLE) == WHOLE) {
        compute_t values[ACCESS];
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) values[i] = line[run + i];
        epilogue.store_vector(base + along(run), values, bias);
      } else {
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) {
          if (!(valid >> (run + i) & 1)) continue;
          const out_offset_t at = base + along(run + i);
          const int row = LINES_ALONG_M ? row_of(run + i) : row_of(index);
          const int pixel = LINES_ALONG_M ? pixel_of(index) : pixel_of(run + i);
          epilogue.store_one(at, z_offset(row, pixel, at), line[run + i], bias[i]);
        }
      }
    }
  }
};

// A tile's sums on their way out: of the pixels of an image and those behind it, of rows from
// first_row of a group on.
template <class Pixels>
struct TileStore {
  Epilogue epilogue;
  bool aligned;
  LineStore<Pixels> target;

  device_inline TileStore(const Pixels& pixels, Position position, int first_row, i64 image,
                          i64 group, const GatherParams& params)
      : epilogue(epilogue_at(params, image, group * ROWS, 0)),
        aligned((reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                    (sizeof(element_t) * ACCESS) ==
                0),
        target(position, first_row, pixels) {}

  device_inline void operator()(const compute_t (&line)[LINE], int index) const {
    target.store(line, index, epilogue, aligned);
  }
};
