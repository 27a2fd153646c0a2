// The sums of a tile of few rows on their way out: through shared memory, where each output adds up
// what the columns of its taps hold, always in the same order.
#pragma once

#include "conv/few_output_channels/tile.cuh"
#include "conv/store/gather_output.cuh"

// In an exchange, from a thread's first sum on; a line is a column.
struct PairPlace {
  static constexpr int LEFT_RUN = 1, RUN = RIGHT_RUN;
  static_assert(!COLUMNS_LEFT && RUN_M == 1 && RUN_N == 2 * VECTOR_N);
  device_inline static constexpr int line(int l, int r, int c) {
    return column_step(sum_column(l, r, c));
  }
  device_inline static constexpr int of(int l, int r, int c) {
    return line(l, r, c) * EXCHANGE_PITCH + row_step(sum_row(l, r, c));
  }
};

// Those of EXCHANGE_ROWS output channels from `first` on.
template <class Sums>
device_inline void exchange_sums(const Sums& sums, Position position, int first,
                                 compute_t* exchange) {
  const int column = position.n - first * TAPS_S;
  compute_t* const mine = exchange + (column * EXCHANGE_PITCH + position.m);
  // Columns from PAIRS on are none.
  sums.registers.template put_lines<PairPlace, EXCHANGE_PAIRS>(mine, 0u - static_cast<u32>(column));
}

// An output of a tile: the number of its row of pixels and of its column, and its channel, of those
// that are exchanged together.
struct TileOutput {
  int row, column, c;

  // Those follow each other that lie side by side in memory.
  device_inline static TileOutput number(int i) {
    if constexpr (LINES_ALONG_M) {
      const int pixel = i / EXCHANGE_ROWS, row = pixel / STRIP_COLUMNS;
      return {row, pixel - row * STRIP_COLUMNS, i - pixel * EXCHANGE_ROWS};
    }
    const int line = i / STRIP_COLUMNS, c = line / TILE_P;
    return {line - c * TILE_P, i - line * STRIP_COLUMNS, c};
  }
};

device_inline void store_outputs(const compute_t* exchange, const FewOutputChannelsTile& tile,
                                 int first_c, const GatherParams& params) {
  const GatherSums whole{params, tile.image, tile.group, 0};
  const Epilogue epilogue = epilogue_at(params, tile.image, static_cast<i64>(tile.group) * ROWS, 0);
  const int columns = SOURCE_W - tile.first_w < TILE_Q ? SOURCE_W - tile.first_w : TILE_Q;
#pragma unroll 1
  for (int i = thread_x(); i < TILE_P * STRIP_COLUMNS * EXCHANGE_ROWS; i += THREADS) {
    const TileOutput output = TileOutput::number(i);
    const Pixel pixel{0, 0, tile.first_p + output.row, tile.first_q + output.column};
    const int c = first_c + output.c;
    if (pixel.p >= OUT_P[0] || pixel.q >= tile.end_q) continue;
    if (ROWS % EXCHANGE_ROWS != 0 && c >= ROWS) continue;
    const int first = pixel.q + LEFT - tile.first_w;  // the leftmost tap's column
    const compute_t* const line =
        exchange + output.c * (TAPS_S * EXCHANGE_PITCH) + output.row * TILE_Q + first;
    compute_t sum[1] = {};
#pragma unroll 16
    for (int s = 0; s < TAPS_S; ++s) {
      const int on = (STEP_W < 0 ? TAPS_S - 1 - s : s) * COLUMN_STEP;
      if (static_cast<u32>(first + on) < static_cast<u32>(columns))
        sum[0] += line[s * EXCHANGE_PITCH + on];
    }
    if (!scale_back(sum, 1)) sum[0] = whole.add_up(pixel, c);
    const out_offset_t at = static_cast<out_offset_t>(c) * OUT_STRIDE_ROW + output_offset(pixel);
    const out_offset_t z_at =
        Z_LIKE_OUT ? at : static_cast<out_offset_t>(c) * Z_STRIDE_ROW + residual_offset(pixel);
    epilogue.store_one(at, z_at, sum[0], epilogue.bias_of(c));
  }
}
