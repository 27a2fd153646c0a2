// Brings what a halo tile multiplies to shared memory from tensors whose channels lie apart, word
// by word: an element of f32, or two channels of 16 bits. The copies are spread over the steps
// before those that need them: load() and store(), some time later, take a step's share.
//
// A tap alone would touch a sector of the filter for each element. So TAP_GROUP taps, which lie
// side by side there, come together, each to a plane of its own.
#pragma once

#include "conv/halo_reader.cuh"
#include "target/async_copy.cuh"
#include "target/vector_access.cuh"

constexpr int WORD_ELEMENTS = 4 / static_cast<int>(sizeof(element_t));
constexpr int CHUNK_WORDS = CHUNK_BYTES / 4;
// 16 bytes further, for neighbouring lanes write neighbouring taps.
constexpr int PLANE_BYTES = TILE_M * PITCH + 16;
constexpr int FILTER_BYTES = TAP_GROUP * PLANE_BYTES;
// Of a group's, by which the next one is on its way: the last one only waits for it.
constexpr int LOAD_STEPS = TAP_GROUP - 1;
static_assert(LOAD_STEPS > 0 && !FILTER_ROWS_INNER);

device_inline constexpr int turns_of(int count, int turns) { return (count + turns - 1) / turns; }

// Words on their way; those of 16 bits wait in registers.
template <int COUNT>
struct Words {
  u32 waiting[WORD_ELEMENTS == 1 ? 1 : COUNT][2];

  // elements: that exist. apart: from one to the other.
  device_inline void load(int index, byte_t* to, const element_t* from, offset_t apart,
                          int elements) {
    if constexpr (WORD_ELEMENTS == 1) {
      async_copy<4>(to, from, elements > 0);
    } else {
      waiting[index][0] = elements > 0 ? load_short(from) : 0;
      waiting[index][1] = elements > 1 ? load_short(from + apart) : 0;
    }
  }
  device_inline void store(int index, byte_t* to) const {
    if constexpr (WORD_ELEMENTS == 2)
      *reinterpret_cast<u32*>(to) = waiting[index][0] | waiting[index][1] << 16;
  }
};

// A thread takes pixels THREADS apart, some words of one in a turn.
struct HaloLoader {
  static constexpr int BATCH = WORD_ELEMENTS == 1 ? 8 : 4;  // words of a turn
  static constexpr int PIXEL_TURNS = CHUNK_WORDS / BATCH;
  static constexpr int TURNS = turns_of(HALO_PIXELS, THREADS) * PIXEL_TURNS;
  static constexpr int STEPS = TAPS_R * TAPS_S / TAP_GROUP * LOAD_STEPS;  // of a chunk
  static constexpr int STEP_TURNS = turns_of(TURNS, STEPS);

  const element_t* source;  // at the tile's first image, this block's group
  byte_t* memory;
  const int* offsets;  // of the halo's pixels, in shared memory
  offset_t from;       // of the chunk, in the source
  int to;              // in shared memory
  int channels;        // from the chunk's first on
  int turn;            // the next
  Words<BATCH * STEP_TURNS> words;

  device_inline HaloLoader(const element_t* at_group, byte_t* shared, const int* table)
      : source(at_group), memory(shared), offsets(table), turn(TURNS) {}

  device_inline void start(int chunk, int halo) {
    from = static_cast<offset_t>(chunk * CHUNK_CHANNELS) * SOURCE_STRIDE_C;
    channels = CHANNELS - chunk * CHUNK_CHANNELS;
    to = halo;
    turn = 0;
  }
  device_inline bool pending() const { return turn < TURNS; }

  device_inline void load() {
    if (!pending()) return;
#pragma unroll
    for (int i = 0; i < STEP_TURNS; ++i) {
      const int pixel = pixel_of(turn + i), first = word_of(turn + i);
      if (pixel >= HALO_PIXELS) continue;
      const int offset = offsets[pixel];
      const element_t* const at =
          opaque(source +
                 (from + offset + static_cast<offset_t>(first * WORD_ELEMENTS) * SOURCE_STRIDE_C));
      byte_t* const place = memory + (to + pixel * PITCH + first * 4);
#pragma unroll
      for (int word = 0; word < BATCH; ++word) {
        const int left = CHANNELS % CHUNK_CHANNELS == 0 ? WORD_ELEMENTS
                                                        : channels - (first + word) * WORD_ELEMENTS;
        words.load(i * BATCH + word, place + word * 4,
                   at + static_cast<offset_t>(word * WORD_ELEMENTS) * SOURCE_STRIDE_C,
                   SOURCE_STRIDE_C, offset >= 0 ? left : 0);
      }
    }
  }
  device_inline void store() {
    if (!pending()) return;
#pragma unroll
    for (int i = 0; i < STEP_TURNS; ++i) {
      const int pixel = pixel_of(turn + i), first = word_of(turn + i);
      if (pixel >= HALO_PIXELS) continue;
#pragma unroll
      for (int word = 0; word < BATCH; ++word)
        words.store(i * BATCH + word, memory + (to + pixel * PITCH + (first + word) * 4));
    }
    turn += STEP_TURNS;
  }

  device_inline static int pixel_of(int turn) { return thread_x() + turn / PIXEL_TURNS * THREADS; }
  device_inline static int word_of(int turn) { return turn % PIXEL_TURNS * BATCH; }
};

// A thread takes one word of one tap of rows ROWS_A_TURN apart. Lanes that follow each other take
// taps, then channels.
struct FilterLoader {
  static constexpr int POSITIONS = TAP_GROUP * CHUNK_WORDS;
  static constexpr int ROWS_A_TURN = THREADS / POSITIONS;
  static_assert(ROWS_A_TURN > 0);
  static constexpr int BATCH = turns_of(turns_of(TILE_M, ROWS_A_TURN), LOAD_STEPS);

  const element_t* w;  // at this thread's first row, its tap and channels
  byte_t* memory;
  offset_t from;    // of the next row
  int to;           // and its place in shared memory
  int first_place;  // of the thread's first row, in a stage
  int rows;         // of the filter, from the tile's first on
  int channel;
  int elements;  // of the thread's word that exist
  int row;       // the next to load
  Words<BATCH> words;

  device_inline FilterLoader(const element_t* at_group, int first_row, byte_t* shared)
      : memory(shared), rows(ROWS - first_row), row(TILE_M) {
    const int position = thread_x() % POSITIONS, tap = position % TAP_GROUP;
    channel = position / TAP_GROUP * WORD_ELEMENTS;
    first_place = tap * PLANE_BYTES + channel / WORD_ELEMENTS * 4 + this_row() * PITCH;
    w = at_group + (static_cast<offset_t>(first_row + this_row()) * W_STRIDE_ROW +
                    static_cast<offset_t>(channel) * W_STRIDE_C +
                    static_cast<offset_t>(tap / TAPS_S) * W_STRIDE_R +
                    static_cast<offset_t>(tap % TAPS_S) * W_STRIDE_S);
  }

  device_inline int this_row() const { return thread_x() / POSITIONS; }

  // Of the group that begins with `step`.
  device_inline void start(const Step& step, int stage) {
    from = static_cast<offset_t>(step.chunk * CHUNK_CHANNELS) * W_STRIDE_C +
           static_cast<offset_t>(step.r) * W_STRIDE_R;
    to = stage + first_place;
    // Threads past the last whole row of positions take none.
    row = this_row() < ROWS_A_TURN ? this_row() : TILE_M;
    elements = CHANNELS % CHUNK_CHANNELS == 0 ? WORD_ELEMENTS
                                              : CHANNELS - step.chunk * CHUNK_CHANNELS - channel;
  }

  // A share of a step's turns.
  template <int SHARES>
  device_inline void load(int share) {
    const element_t* const first = opaque(w + from);
#pragma unroll
    for (int i = share * BATCH / SHARES; i < (share + 1) * BATCH / SHARES; ++i) {
      if (row + i * ROWS_A_TURN >= TILE_M) continue;
      const bool exists = ROWS % TILE_M == 0 || row + i * ROWS_A_TURN < rows;
      words.load(i, memory + (to + i * (ROWS_A_TURN * PITCH)),
                 first + static_cast<offset_t>(i * ROWS_A_TURN) * W_STRIDE_ROW, W_STRIDE_C,
                 exists ? elements : 0);
    }
  }
  device_inline void store() {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if (row + i * ROWS_A_TURN < TILE_M) words.store(i, memory + (to + i * (ROWS_A_TURN * PITCH)));
    }
    if (row >= TILE_M) return;
    row += BATCH * ROWS_A_TURN;
    to += BATCH * ROWS_A_TURN * PITCH;
    from += static_cast<offset_t>(BATCH * ROWS_A_TURN) * W_STRIDE_ROW;
  }
};
