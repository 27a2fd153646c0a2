// Stores the sums of a tile through shared memory, where each output adds up the columns of its
// taps, always in the same order.
#pragma once

#include "conv/few_output_channels/tile.cuh"
#include "conv/store/gather_output.cuh"

// The offset of a sum in the exchange memory from the thread's first sum; a line is a column.
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

// Writes the sums of EXCHANGE_LINES lines from the tile's line `first` on to shared memory.
template <class Sums>
device_inline void exchange_sums(const Sums& sums, Position position, int first,
                                 compute_t* exchange) {
  const int column = position.n - first * TAPS_S;
  compute_t* const mine = exchange + (column * EXCHANGE_PITCH + position.m);
  // Columns from PAIRS on do not exist.
  sums.registers.template put_lines<PairPlace, EXCHANGE_PAIRS>(mine, 0u - static_cast<u32>(column));
}

// A pixel of a tile and a line: its row, its column, and the line among those that are exchanged
// together. It has one output for each phase along the width.
struct TileOutput {
  static constexpr int CHANNELS_OUT = EXCHANGE_LINES < ROWS ? EXCHANGE_LINES : ROWS;
  static constexpr int PHASES_OUT = EXCHANGE_LINES / CHANNELS_OUT;
  static_assert(CHANNELS_OUT * PHASES_OUT == EXCHANGE_LINES);

  int row, column, line;

  // Output `i`; consecutive numbers are contiguous in memory.
  device_inline static TileOutput number(int i) {
    const int inner = i / CHANNELS_OUT;
    const int pixels = LINES_ALONG_M ? inner : i, next = pixels / STRIP_COLUMNS;
    const int column = pixels - next * STRIP_COLUMNS;
    const int c = LINES_ALONG_M ? i - inner * CHANNELS_OUT : next / (TILE_P * PHASES_OUT);
    const int rows = LINES_ALONG_M ? next : next - c * (TILE_P * PHASES_OUT);
    const int row = rows / PHASES_OUT, h = rows - row * PHASES_OUT;
    return {row, column, h * CHANNELS_OUT + c};
  }
};

// The columns of a row of taps that belong to phase W of a pixel's outputs.
template <int W>
struct ColumnTaps {
  static constexpr int COUNT = FILTER_S[phase_of(0, W)], ORIGIN = ORIGIN_W[phase_of(0, W)];
  static constexpr int PIXELS = OUT_Q[phase_of(0, W)];
  static constexpr int FIRST = ColumnTaps<W - 1>::FIRST + ColumnTaps<W - 1>::COUNT;
};
template <>
struct ColumnTaps<-1> {
  static constexpr int COUNT = 0, FIRST = 0;
};

// Stores the outputs of a tile's lines from `first` on.
struct OutputStore {
  const GatherParams& params;
  const compute_t* exchange;
  const FewOutputChannelsTile& tile;
  int first, columns;  // first line; columns of the source

  device_inline OutputStore(const GatherParams& from, const compute_t* sums,
                            const FewOutputChannelsTile& of, int first_line)
      : params(from),
        exchange(sums),
        tile(of),
        first(first_line),
        columns(SOURCE_W - of.first_w < TILE_Q ? SOURCE_W - of.first_w : TILE_Q) {}

  // Stores the outputs of one pixel for the phases along the width from W on.
  template <int W>
  device_inline void put(const Epilogue& epilogue, const TileOutput& output, const Pixel& pixel,
                         int h, int c) const {
    using Taps = ColumnTaps<W>;
    const int phase = phase_of(h, W);
    if (pixel.p < OUT_P[phase] && pixel.q < Taps::PIXELS) {
      const int first_tap = pixel.q + Taps::ORIGIN - tile.first_w;
      const compute_t* const line = exchange + output.row * TILE_Q + first_tap +
                                    (output.line * TAPS_S + Taps::FIRST) * EXCHANGE_PITCH;
      compute_t sum[1] = {};
#pragma unroll 16
      for (int s = 0; s < Taps::COUNT; ++s)
        if (static_cast<u32>(first_tap + s * STEP_W) < static_cast<u32>(columns))
          sum[0] += line[s * (EXCHANGE_PITCH + STEP_W)];
      if (!scale_back(sum, 1))
        sum[0] = GatherSums{params, tile.image, tile.group, phase}.add_up(pixel, c);
      const out_offset_t at = static_cast<out_offset_t>(c) * OUT_STRIDE_ROW + output_offset(pixel) +
                              static_cast<out_offset_t>(OUT_FIRST[phase]);
      const out_offset_t z_at = Z_LIKE_OUT ? at
                                           : static_cast<out_offset_t>(c) * Z_STRIDE_ROW +
                                                 residual_offset(pixel) +
                                                 static_cast<out_offset_t>(Z_FIRST[phase]);
      epilogue.store_one(at, z_at, sum[0], epilogue.bias_of(c));
    }
    if constexpr (W + 1 < COLUMN_PHASES) put<W + 1>(epilogue, output, pixel, h, c);
  }
};

device_inline void store_outputs(const compute_t* exchange, const FewOutputChannelsTile& tile,
                                 int first, const GatherParams& params) {
  Epilogue epilogue = epilogue_at(params, tile.image, static_cast<i64>(tile.group), 0);
  const OutputStore store(params, exchange, tile, first);
#pragma unroll 1
  for (int i = thread_x(); i < TILE_P * STRIP_COLUMNS * EXCHANGE_LINES; i += THREADS) {
    const TileOutput output = TileOutput::number(i);
    const Pixel pixel{0, tile.o, tile.first_p + output.row, tile.first_q + output.column};
    const int in_tile = first + output.line;
    const int line = static_cast<int>(tile.lines) * TILE_LINES + in_tile;
    if (pixel.p >= OUT_P[0] || pixel.q >= tile.end_q) continue;
    if (TILE_LINES % EXCHANGE_LINES != 0 && in_tile >= TILE_LINES) continue;
    if (ALL_LINES % TILE_LINES != 0 && line >= ALL_LINES) continue;
    const int h = ROW_PHASES == 1 ? 0 : line / ROWS, c = line - h * ROWS;
    store.put<0>(epilogue, output, pixel, h, c);
  }
}
