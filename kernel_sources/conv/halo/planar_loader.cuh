// Copies the operands of a halo tile from NCHW tensors to shared memory, word by word: an element
// of f32 or f64, or two channels of 16 bits. The copies are spread over the steps before the ones
// that need them.
//
// Copying a single tap would touch a sector of the filter for each element. So TAP_GROUP taps,
// which are contiguous in memory, are copied together, each to its own plane.
//
// Each kernel defines Layout, which says where operands are in shared memory. PIXELS, TAPS, WIDTH:
// the pixels of a halo, the taps of the filter and of a row of it. HALO, TAP, ROW: bytes of a halo,
// of a tap of the filter, and from one row of a tap to the next. halo_word(pixel, word) and
// tap_word(word): the offsets of a word of channels. HALO_LO, TAP_LO: bytes from an element's hi
// part to its lo part if both are kept, else 0.
#pragma once

#include "conv/geometry/tap_walk.cuh"
#include "conv/load/row_loader.cuh"
#include "conv/mma/channel_chunk.cuh"

constexpr int COPY_BYTES = ELEMENT_BYTES;
constexpr int CHUNK_WORDS = CHUNK_BYTES / WORD_BYTES;
// The steps of a group during which the next group is loaded; it lands in the last step.
constexpr int LOAD_STEPS = TAP_GROUP - 1;
static_assert(LOAD_STEPS > 0 && !FILTER_ROWS_INNER);

// A thread takes every THREADS-th pixel, some words of it each turn.
template <class Layout>
struct PlanarHaloLoader {
  static constexpr int LO = Layout::HALO_LO;
  static constexpr int BATCH = ELEMENT_BYTES == 4 && LO == 0 ? 8 : 4;  // words copied in a turn
  static constexpr int PIXEL_TURNS = CHUNK_WORDS / BATCH;
  static constexpr int TURNS = turns_of(Layout::PIXELS, THREADS) * PIXEL_TURNS;
  static constexpr int STEPS = Layout::TAPS / TAP_GROUP * LOAD_STEPS;  // steps of a chunk that load
  static constexpr int STEP_TURNS = turns_of(TURNS, STEPS);

  const element_t* source;  // at the tile's first image, this block's group
  byte_t* memory;
  const int* offsets;  // offsets of the halo's pixels, in shared memory
  offset_t from;       // offset of the chunk in the source
  byte_t* to;          // address of the halo in shared memory
  int channels;        // channels from the chunk's first one on
  int first_pixel;     // the thread's first pixel
  int turn;            // the next turn
  using Words = Copies<BATCH * STEP_TURNS, COPY_BYTES, LO>;
  Words words;

  device_inline PlanarHaloLoader(const element_t* at_group, byte_t* shared, const int* table)
      : source(at_group),
        memory(shared),
        offsets(table),
        to(shared),
        first_pixel(kept(static_cast<int>(thread_x()))),
        turn(TURNS + STEP_TURNS) {}

  device_inline void start(int chunk, int halo) {
    from = static_cast<offset_t>(chunk * CHUNK_CHANNELS) * SOURCE_STRIDE_C;
    channels = CHANNELS - chunk * CHUNK_CHANNELS;
    to = memory + halo;
    turn = 0;
  }
  device_inline bool pending() const { return turn < (Words::WAIT ? TURNS + STEP_TURNS : TURNS); }

  // Stores what the step before loaded, and loads this step's share.
  device_inline void step() {
    if (!pending()) return;
    if (Words::WAIT && turn > 0) store(turn - STEP_TURNS);
    load();
    turn += STEP_TURNS;
  }
  device_inline void finish() {
#pragma unroll 1
    while (pending()) step();
  }

 private:
  device_inline void load() {
#pragma unroll
    for (int i = 0; i < STEP_TURNS; ++i) {
      const int pixel = pixel_of(turn + i), first = word_of(turn + i);
      // A copy to registers that does not exist loads nothing, and takes no branch
      // (vector_access.cuh).
      const bool exists = pixel < Layout::PIXELS;
      if (!Words::WAIT && !exists) continue;
      const int offset = offsets[exists ? pixel : 0];
      const element_t* const at =
          opaque(source +
                 (from + offset + static_cast<offset_t>(first * WORD_ELEMENTS) * SOURCE_STRIDE_C));
      byte_t* const place = to + Layout::halo_word(pixel, first);
#pragma unroll
      for (int word = 0; word < BATCH; ++word) {
        const int left = CHANNELS % CHUNK_CHANNELS == 0 ? WORD_ELEMENTS
                                                        : channels - (first + word) * WORD_ELEMENTS;
        words.load(i * BATCH + word, exists, place + Layout::halo_word(0, word),
                   at + static_cast<offset_t>(word * WORD_ELEMENTS) * SOURCE_STRIDE_C,
                   SOURCE_STRIDE_C, offset >= 0 ? left : 0);
      }
    }
  }
  device_inline void store(int loaded) const {
    static_assert(!Words::WAIT || BATCH == 4);
#pragma unroll
    for (int i = 0; i < STEP_TURNS; ++i) {
      const int pixel = pixel_of(loaded + i), first = word_of(loaded + i);
      if (pixel >= Layout::PIXELS) continue;
      words.store_four(i * BATCH, to + Layout::halo_word(pixel, first));
    }
  }

  device_inline int pixel_of(int turn) const { return first_pixel + turn / PIXEL_TURNS * THREADS; }
  device_inline static int word_of(int turn) { return turn % PIXEL_TURNS * BATCH; }
};

// A thread takes one word of one tap of each row. Neighbouring lanes take taps, then channels.
template <class Layout>
struct PlanarFilterLoader {
  using Loader = RowLoader<TAP_GROUP * CHUNK_WORDS, COPY_BYTES, Layout::ROW, LOAD_STEPS,
                           ROWS % TILE_M == 0 && CHANNELS % CHUNK_CHANNELS == 0, Layout::TAP_LO>;
  Loader loader;

  device_inline static int tap() { return Loader::position() % TAP_GROUP; }
  device_inline static int channel() { return Loader::position() / TAP_GROUP * WORD_ELEMENTS; }

  device_inline PlanarFilterLoader(const element_t* at_group, int first_row, byte_t* shared)
      : loader(at_group + (static_cast<offset_t>(first_row) * W_STRIDE_ROW +
                           static_cast<offset_t>(channel()) * W_STRIDE_C +
                           static_cast<offset_t>(tap() / Layout::WIDTH) * W_STRIDE_R +
                           static_cast<offset_t>(tap() % Layout::WIDTH) * W_STRIDE_S),
               tap() * Layout::TAP + Layout::tap_word(channel() / WORD_ELEMENTS), W_STRIDE_ROW,
               W_STRIDE_C, ROWS - first_row, shared) {}

  // Starts to load the group that begins with `step`.
  device_inline void start(const Step& step, int stage) {
    const int first = step.chunk * CHUNK_CHANNELS;
    loader.start(
        static_cast<offset_t>(first) * W_STRIDE_C + static_cast<offset_t>(step.r) * W_STRIDE_R,
        stage, CHANNELS % CHUNK_CHANNELS == 0 ? WORD_ELEMENTS : CHANNELS - first - channel());
  }
};
