// Stores a tile's accumulators line by line, in vectors where the elements of a line are contiguous
// in the output.
#pragma once

#include "conv/store/neighbour_store.cuh"

// Stores pixels from an image on, for rows of a group from first_row on. An output's offset is the
// sum of its line's offset and that of its element in the line, which is the same for all lines.
//
// Pixels describes the tile's pixels: inside(n) tells whether there is a pixel n; at(n) gives its
// place, or that of some pixel of the tile if there is none.
template <class Pixels>
struct TileStore {
  using Taken = OwnSums;
  // The pixels of a run that is stored as a vector are contiguous, so one offset suffices.
  static constexpr int RUN = OUTPUT_VECTOR ? ACCESS : 1;

  GatherSums sums;
  Epilogue epilogue;
  bool aligned;
  Position position;
  int first_row;
  Pixels pixels;
  out_offset_t runs[LINE / RUN];  // offsets of pixels, unless LINES_ALONG_M
  u32 valid = 0;                  // bit i: the output has element i of a line
  u64 lost = 0;                   // bit i: piece i must be recomputed
  static_assert(LINE <= 32 && (LINES * PIECES <= 64 || !CHECKED));

  // places.inside(n) tells whether the tile has a pixel n, and places.place(n) is its offset in the
  // output. With LINES_ALONG_M they are not used.
  template <class Places>
  device_inline TileStore(const Pixels& of_tile, const Places& places, Position at, int row,
                          i64 image, i64 group, const GatherParams& params, int phase = 0)
      : sums{params, image, group, phase},
        epilogue(epilogue_at(params, image, group, phase)),
        aligned((reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                    (sizeof(output_t) * ACCESS) ==
                0),
        position{from_here(at.m), from_here(at.n)},
        first_row(row),
        pixels(of_tile) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) {
      bool inside = row_of(i) < ROWS;
      if constexpr (!LINES_ALONG_M) inside = places.inside(pixel_of(i));
      valid |= static_cast<u32>(inside) << i;
    }
    if constexpr (!LINES_ALONG_M) {
#pragma unroll
      for (int i = 0; i < LINE; i += RUN) runs[i / RUN] = places.place(pixel_of(i));
    }
  }

  // The row and the pixel of element i of a line, or of line i.
  device_inline int row_of(int i) const { return first_row + position.m + row_step(i); }
  device_inline int pixel_of(int i) const { return position.n + column_step(i); }

  // For add_up_lost().
  device_inline int row(int index, int element) const {
    return row_of(LINES_ALONG_M ? element : index);
  }
  device_inline int pixel(int index, int element) const {
    return pixel_of(LINES_ALONG_M ? index : element);
  }
  device_inline bool exists(int /*index*/, int element) const { return valid >> element & 1; }

  // Stores a piece of line `index`, from element `first` on.
  device_inline void operator()(compute_t (&piece)[PIECE], int index, int first) {
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
    const u32 existing = valid >> first;
    if (!scale_back(piece, existing)) {
      lost |= u64(1) << (index * PIECES + first / PIECE);
      return;
    }
    out_offset_t from[PIECE / RUN];
    if constexpr (!LINES_ALONG_M) take_piece<RUN>(from, runs, first);
    const auto along = [&](int i) {
      if constexpr (LINES_ALONG_M)
        return static_cast<out_offset_t>(row_of(first + i)) * OUT_STRIDE_ROW;
      else
        return from[i / RUN] + i % RUN;
    };
#pragma unroll
    for (int run = 0; run < PIECE; run += ACCESS) {
      constexpr u32 WHOLE = (1u << ACCESS) - 1;
      compute_t bias[ACCESS];
#pragma unroll
      for (int i = 0; i < ACCESS; ++i) {
        if constexpr (LINES_ALONG_M)
          bias[i] =
              existing >> (run + i) & 1 ? epilogue.bias_of(row_of(first + run + i)) : compute_t(0);
        else
          bias[i] = line_bias;
      }
      if (OUTPUT_VECTOR && aligned && (existing >> run & WHOLE) == WHOLE) {
        compute_t values[ACCESS];
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) values[i] = piece[run + i];
        epilogue.store_vector(base + along(run), values, bias);
      } else {
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) {
          if (!(existing >> (run + i) & 1)) continue;
          const out_offset_t at = base + along(run + i);
          const int element = first + run + i;
          epilogue.store_one(at,
                             residual_place(pixels, row(index, element), pixel(index, element), at),
                             piece[run + i], bias[i]);
        }
      }
    }
  }

  // Called after all pieces, when their registers are free: recomputes the pieces that were lost.
  device_inline void finish() const { add_up_lost(*this); }
};

// Stores the sums of all parts of a tile line by line, through shared memory for ELEMENTS values,
// which no copy in flight may use. The table of the tile's pixels is in that memory first.
template <int ELEMENTS, class Sums, class Pixels>
device_inline void store_by_line(const Sums& sums, const Pixels& pixels, Position position,
                                 int first_row, i64 image, i64 group, const GatherParams& params,
                                 compute_t* memory, int phase = 0) {
  const PlacesInShared places{reinterpret_cast<out_offset_t*>(memory)};
  static_assert(TILE_N * sizeof(out_offset_t) <= ELEMENTS * sizeof(compute_t));
  if (!LINES_ALONG_M) {
    block_barrier();  // all threads have read their stages
    places.put(pixels);
    block_barrier();
  }
  if constexpr (LINES_ALONG_M || OUTPUT_VECTOR || !NeighboursSums::EVEN)
    reduce_and_store<ELEMENTS>(
        sums, memory, TileStore(pixels, places, position, first_row, image, group, params, phase));
  else
    reduce_and_store<ELEMENTS>(
        sums, memory, NeighbourStore(pixels, places, first_row, image, group, params, phase));
}
