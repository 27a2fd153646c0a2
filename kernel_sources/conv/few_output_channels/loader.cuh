// Loads the stages of a tile into shared memory; the copies are spread over the fragments of the
// previous stage. The halo is copied by 16 bytes if a pixel's channels are contiguous, else word by
// word, like the filter.
//
// Eight consecutive lanes copy eight pixels, or rows of the filter; the next eight lanes copy the
// next 16 bytes or words of the same ones. In shared memory pixels are an odd number of 16 bytes
// apart, so no two lanes hit the same bank. f64 pixels are an odd number of 32 bytes apart, and
// groups have four lanes.
#pragma once

#include "conv/few_output_channels/tile.cuh"
#include "conv/load/row_loader.cuh"

// The slots of a stage in which copies are issued, LOAD_FRAGMENTS fragments apart; the last
// fragments are left for the copies to land. Copies through registers are stored one slot after
// they are loaded, because two fragments hide more of the latency than one.
constexpr int STAGE_SLOTS = TAPS_R * CHUNK_STEPS / LOAD_FRAGMENTS - (3 - LOAD_FRAGMENTS);
constexpr int LOAD_SLOTS = STAGE_SLOTS > 1 ? STAGE_SLOTS : 1;
constexpr int VECTOR_BYTES = 16;

// The distribution of copies of BYTES bytes over the lanes.
template <int BYTES>
struct LaneOrder {
  static constexpr int UNIT_BYTES = BYTES == VECTOR_BYTES ? VECTOR_BYTES : WORD_BYTES;
  // Units of a pixel or row that different lanes copy at once.
  static constexpr int UNITS = BYTES == VECTOR_BYTES ? CHUNK_BYTES / VECTOR_BYTES : 4;
  static constexpr int COPIES = CHUNK_BYTES / (UNITS * UNIT_BYTES);  // of a pixel or row, by a lane
  static constexpr int ELEMENTS = UNIT_BYTES / ELEMENT_BYTES;        // elements of a copy
  static constexpr int ITEMS_A_TURN = THREADS / UNITS;               // pixels or rows in a turn
  static constexpr int LANES = ELEMENT_BYTES < 8 ? 8 : 4;            // consecutive lanes of a unit

  device_inline static int item() {
    return thread_x() % LANES + thread_x() / (LANES * UNITS) * LANES;
  }
  device_inline static int unit() { return thread_x() / LANES % UNITS; }
  // The number of elements of a copy that exist.
  device_inline static int existing(int left, int copy) {
    return CHANNELS % CHUNK_CHANNELS == 0 ? ELEMENTS : left - copy * (UNITS * ELEMENTS);
  }
};

struct HaloLoader {
  using Order = LaneOrder<COPY_BYTES>;
  static constexpr int TURNS = turns_of(HALO_PIXELS, Order::ITEMS_A_TURN);
  static constexpr int BATCH = turns_of(TURNS, LOAD_SLOTS);  // turns in a slot
  static constexpr int TURN_BYTES = Order::ITEMS_A_TURN * PITCH;

  const element_t* source;  // address of this thread's first channel
  const element_t* chunk;   // address of the chunk in the tile's image and group
  byte_t* memory;           // address of this thread's units in shared memory
  int first_h, first_w;
  int stage;
  int left;         // number of channels from the thread's first on
  int row, column;  // the thread's next pixel in the halo
  int from, place;  // that pixel's offset in the source, and in the stage
  int turn;
  Copies<BATCH * Order::COPIES, COPY_BYTES> copies;

  device_inline HaloLoader(const element_t* first_channel, byte_t* shared)
      : source(first_channel +
               static_cast<offset_t>(Order::unit() * Order::ELEMENTS) * SOURCE_STRIDE_C),
        memory(shared + Order::unit() * Order::UNIT_BYTES),
        turn(TURNS + BATCH) {}

  device_inline void start(const FewOutputChannelsTile& tile, int chunk_number, int to) {
    const int number = tile.channel_chunk(chunk_number);
    const int d = tile.o * STRIDE_D + ORIGIN_D[0] + tile.tap_plane(chunk_number) * STEP_D;
    chunk = source + static_cast<i64>(tile.image) * SOURCE_STRIDE_N +
            static_cast<i64>(d) * SOURCE_STRIDE_D +
            static_cast<i64>(tile.group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C) +
            static_cast<offset_t>(number * CHUNK_CHANNELS) * SOURCE_STRIDE_C;
    first_h = TOP + tile.first_p * STRIDE_H;
    first_w = tile.first_w;
    left = CHANNELS - number * CHUNK_CHANNELS - Order::unit() * Order::ELEMENTS;
    stage = to;
    const int pixel = Order::item();
    row = pixel / TILE_Q, column = pixel % TILE_Q;
    from = (first_h + row) * static_cast<int>(SOURCE_STRIDE_H) +
           (first_w + column) * static_cast<int>(SOURCE_STRIDE_W);
    place = pixel * PITCH;
    turn = 0;
  }
  device_inline bool pending() const { return turn < (COPY_BYTES == 2 ? TURNS + BATCH : TURNS); }

  // Stores what the previous slot has loaded, and loads this slot's share.
  device_inline void step() {
    if (COPY_BYTES == 2 && turn > 0) store();
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const bool inside = static_cast<u32>(first_h + row) < static_cast<u32>(SOURCE_H) &&
                          first_w + column < SOURCE_W;
      const element_t* const at = opaque(chunk + from);
#pragma unroll
      for (int copy = 0; copy < Order::COPIES; ++copy)
        copies.load(
            i * Order::COPIES + copy, place < HALO_BYTES,
            memory + (stage + place + copy * (Order::UNITS * Order::UNIT_BYTES)),
            at + static_cast<offset_t>(copy * (Order::UNITS * Order::ELEMENTS)) * SOURCE_STRIDE_C,
            SOURCE_STRIDE_C, inside ? Order::existing(left, copy) : 0);
      advance();
    }
    turn += BATCH;
  }

 private:
  device_inline void store() const {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const int loaded = place - (BATCH - i) * TURN_BYTES;
      if (loaded >= HALO_BYTES) continue;
#pragma unroll
      for (int copy = 0; copy < Order::COPIES; ++copy)
        copies.store(i * Order::COPIES + copy,
                     memory + (stage + loaded + copy * (Order::UNITS * Order::UNIT_BYTES)));
    }
  }
  device_inline void advance() {
    constexpr int ROWS_ON = Order::ITEMS_A_TURN / TILE_Q;
    constexpr int COLUMNS_ON = Order::ITEMS_A_TURN % TILE_Q;
    const auto on = [&](int rows, int columns) {
      row += rows, column += columns;
      from +=
          rows * static_cast<int>(SOURCE_STRIDE_H) + columns * static_cast<int>(SOURCE_STRIDE_W);
    };
    on(ROWS_ON, COLUMNS_ON);
    if (COLUMNS_ON > 0 && column >= TILE_Q) on(1, -TILE_Q);
    place += TURN_BYTES;
  }
};

// A row of the filter, (r, h, c, s): its offset in global memory, which is -1 if the phase has no
// such tap, and its offset in shared memory.
struct alignas(8) FilterRow {
  int from, place;
};
constexpr int FILTER_ROWS = TAPS_R * PAIRS, ALL_FILTER_ROWS = LINE_GROUPS * FILTER_ROWS;
constexpr bool ALL_ROWS_EXIST = PHASES == 1 && ALL_LINES == TILE_LINES;

// Row `index` of the tile's lines, ordered as in memory as far as possible.
device_inline FilterRow filter_row(int index) {
  const int lines = index / FILTER_ROWS, number = index - lines * FILTER_ROWS;
  constexpr bool CHANNELS_INNER = W_STRIDE_ROW < W_STRIDE_S;
  constexpr int INNER = CHANNELS_INNER ? TILE_LINES : TAPS_S;
  const int outer = number / INNER, inner = number - outer * INNER;
  constexpr int OUTER = CHANNELS_INNER ? TAPS_S : TAPS_R;
  const int outermost = outer / OUTER, between = outer - outermost * OUTER;
  const int line = CHANNELS_INNER ? inner : outermost;
  const int r = CHANNELS_INNER ? outermost : between;
  const int pair = CHANNELS_INNER ? between : inner;
  const int at = FILTER_AT + r * TAP_BYTES + filter_place(line * TAPS_S + pair, 0);
  const int h = (lines * TILE_LINES + line) / ROWS, c = lines * TILE_LINES + line - h * ROWS;
  if (h >= ROW_PHASES) return {-1, at};
  int w = 0, s = pair;
  while (COLUMN_PHASES > 1 && s >= FILTER_S[phase_of(0, w)]) s -= FILTER_S[phase_of(0, w++)];
  const int phase = phase_of(h, w);
  // The phase's own tap at row r of the phase that covers all of them.
  const int own = ROW_PHASES == 1 ? r : r + (ORIGIN_H[0] - ORIGIN_H[phase]) * STEP_H;
  if (static_cast<u32>(own) >= static_cast<u32>(FILTER_R[phase])) return {-1, at};
  return {(PHASES == 1 ? 0 : W_FIRST[phase]) + c * static_cast<int>(W_STRIDE_ROW) +
              own * static_cast<int>(W_STRIDE_R) + s * static_cast<int>(W_STRIDE_S),
          at};
}

struct FilterLoader {
  using Order = LaneOrder<ELEMENT_BYTES>;
  static constexpr int TURNS = turns_of(FILTER_ROWS, Order::ITEMS_A_TURN);
  static constexpr int BATCH = turns_of(TURNS, LOAD_SLOTS);
  static_assert(Order::UNITS == 4 && Order::UNIT_BYTES == WORD_BYTES);

  const element_t* w;      // address of this thread's first channel
  const element_t* chunk;  // address of the chunk in the tile's group
  byte_t* memory;          // address of this thread's units in shared memory
  const FilterRow *table, *rows;
  int stage, left, turn;
  int places[BATCH];  // offsets of elements that are in registers; -1: none
  Copies<BATCH * Order::COPIES, ELEMENT_BYTES> copies;

  device_inline FilterLoader(const element_t* first_channel, byte_t* shared,
                             const FilterRow* all_rows)
      : w(first_channel + static_cast<offset_t>(Order::unit() * Order::ELEMENTS) * W_STRIDE_C),
        memory(shared + Order::unit() * Order::UNIT_BYTES),
        table(all_rows),
        rows(all_rows),
        turn(TURNS + BATCH) {}

  device_inline void start(const FewOutputChannelsTile& tile, int chunk_number, int to) {
    const int number = tile.channel_chunk(chunk_number);
    rows = table + tile.lines * FILTER_ROWS;
    chunk = w + static_cast<i64>(tile.group) * W_STRIDE_GROUP +
            static_cast<i64>(tile.tap_plane(chunk_number)) * W_STRIDE_T +
            static_cast<offset_t>(number * CHUNK_CHANNELS) * W_STRIDE_C;
    left = CHANNELS - number * CHUNK_CHANNELS - Order::unit() * Order::ELEMENTS;
    stage = to;
    turn = 0;
#pragma unroll
    for (int i = 0; i < BATCH; ++i) places[i] = -1;
  }
  device_inline bool pending() const { return turn < (ELEMENT_BYTES == 2 ? TURNS + BATCH : TURNS); }

  device_inline void step() {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if constexpr (ELEMENT_BYTES == 2) store(i);
      const int number = Order::item() + (turn + i) * Order::ITEMS_A_TURN;
      const bool exists = number < FILTER_ROWS;
      const FilterRow filter = rows[exists ? number : 0];
      const bool is_tap = ALL_ROWS_EXIST || filter.from >= 0;  // other rows are zeros
      const element_t* const at = opaque(chunk + (is_tap ? filter.from : 0));
      places[i] = exists ? stage + filter.place : -1;
#pragma unroll
      for (int copy = 0; copy < Order::COPIES; ++copy)
        copies.load(
            i * Order::COPIES + copy, exists,
            memory + (stage + filter.place + filter_place(0, copy * Order::UNITS)),
            at + static_cast<offset_t>(copy * (Order::UNITS * Order::ELEMENTS)) * W_STRIDE_C,
            W_STRIDE_C, exists && is_tap ? Order::existing(left, copy) : 0);
    }
    turn += BATCH;
  }

 private:
  device_inline void store(int i) const {
    if (places[i] < 0) return;
#pragma unroll
    for (int copy = 0; copy < Order::COPIES; ++copy)
      copies.store(i * Order::COPIES + copy,
                   memory + (places[i] + filter_place(0, copy * Order::UNITS)));
  }
};

// Fills columns of the product that are not pairs with zeros, once, in both stages: a NaN there
// would look like a NaN among the sums.
device_inline void clear_idle_columns(byte_t* memory) {
  constexpr int IDLE = TILE_N - PAIRS, WORDS = CHUNK_BYTES / 4;
  if constexpr (SPLIT && IDLE > 0) {
    for (int i = thread_x(); i < 2 * TAPS_R * IDLE * WORDS; i += THREADS) {
      const int column = i / WORDS, tap = column / IDLE, stage = tap / TAPS_R;
      *reinterpret_cast<u32*>(memory + stage * STAGE_BYTES + FILTER_AT +
                              (tap - stage * TAPS_R) * TAP_BYTES +
                              filter_place(PAIRS + column % IDLE, i % WORDS)) = 0;
    }
  }
}
