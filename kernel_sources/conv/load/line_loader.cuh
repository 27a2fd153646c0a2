// Loads a band of x to shared memory as lines of words: [copy][plane][row][line]. A plane is one
// channel or, if channels are contiguous in a pixel, all of them. The elements of a line are PHASES
// apart in memory, with a line for each remainder, so that the elements that a product needs next
// to each other are neighbours. A word holds two 16-bit elements. Lines of these may be kept twice
// (COPIES), the second time shifted by one element, so that every two neighbours form a word in one
// of the copies; or they are kept only shifted (X_SHIFT).
//
// If rows of x and the first elements of bands are aligned, a thread takes X_ACCESS bytes at a
// time; a line then begins X_FRONT elements before the band.
#pragma once

#include "conv/load/row_loader.cuh"
#include "target/vector_access.cuh"

// The index of the word of a line that holds element `element` or, with COPIES, begins with it.
device_inline constexpr int line_place(int element) {
  const int at = element + X_FRONT;
  return (COPIES == 1 ? 0 : at % 2 * X_COPY) + at / WORD_ELEMENTS;
}
constexpr int X_WORDS = (COPIES == 1 ? 0 : X_COPY) + X_PLANES * X_PLANE;
constexpr int X_BYTES = (X_WORDS * WORD_BYTES + 15) / 16 * 16;  // whole vectors

// A thread takes the same chunk of X_CHUNK words of every ROWS_A_TURN-th row. If a line has more
// chunks than the block has threads, it is taken in segments. Words outside x are zero.
//
// Lines has ROWS, the rows of a plane; PHASES; WORDS, the words of a line; SIZE, the elements of a
// row of the source; STEPS, the steps in which a band is loaded. X_PLANE, X_ROW, X_LINE and X_COPY
// are the words from one plane, row, line or copy to the next.
template <class Lines>
struct LineLoader {
  static constexpr int LINE_PHASES = Lines::PHASES;
  static constexpr int LINE_CHUNKS = Lines::WORDS / X_CHUNK;
  static constexpr int POSITIONS = LINE_PHASES * LINE_CHUNKS;
  static constexpr int SEGMENTS = turns_of(POSITIONS, THREADS);
  static constexpr int SEGMENT = turns_of(POSITIONS, SEGMENTS);  // positions of a segment
  static constexpr int ROWS_A_TURN = THREADS / SEGMENT;
  static constexpr int SEGMENT_TURNS = turns_of(X_PLANES * Lines::ROWS, ROWS_A_TURN);
  static constexpr int TURNS = SEGMENTS * SEGMENT_TURNS;
  static constexpr int BATCH = turns_of(TURNS, Lines::STEPS);
  static constexpr int ELEMENTS = X_CHUNK * WORD_ELEMENTS;         // elements of a chunk
  static constexpr bool WHOLE = X_ACCESS == X_CHUNK * WORD_BYTES;  // a chunk is one load
  static constexpr bool NEXT = COPIES == 2 || X_SHIFT == 1;        // a chunk needs one more element
  static_assert(Lines::WORDS % X_CHUNK == 0);
  static_assert(WHOLE || X_ACCESS == ELEMENT_BYTES);

  // A chunk of 16-bit elements in flight, in registers.
  struct Chunk {
    u32 parts[(WHOLE ? X_CHUNK : ELEMENTS) + NEXT];
    int place;  // offset in shared memory; -1: there is no chunk

    // Word i of the chunk in lines that are shifted by `shift` elements.
    device_inline u32 word(int i, int shift) const {
      if constexpr (WHOLE)
        return shift == 0 ? parts[i] : parts[i] >> 16 | parts[i + 1] << 16;
      else
        return parts[2 * i + shift] | parts[2 * i + 1 + shift] << 16;
    }
  };

  const element_t* x;  // address of the first plane in image 0
  const element_t* image;
  byte_t* memory;
  int planes;                  // planes that exist, from the first one on
  int first_h, first_element;  // the band's first row and element in x
  int stage;                   // offset of the band in shared memory
  int turn;                    // the next turn
  // The thread's next chunk: its plane and row, its first element in a row of x, its offset in the
  // image (which may run past the end), and its offset in shared memory.
  int plane, row, first;
  u32 from;
  int to;
  Chunk chunks[BATCH];

  device_inline LineLoader(const element_t* first_plane, int plane_count, byte_t* shared)
      : x(first_plane), memory(shared), planes(plane_count), turn(TURNS + BATCH) {}

  // h, element: the band's first row and element in x, possibly outside x. place: its offset in
  // shared memory.
  device_inline void start(u32 of_image, int h, int element, int place) {
    image = x + static_cast<i64>(of_image) * SOURCE_STRIDE_N;
    first_h = h, first_element = element;
    stage = place;
    turn = 0;
    start_segment(0);
#pragma unroll
    for (int i = 0; i < BATCH; ++i) chunks[i].place = -1;
  }
  device_inline bool pending() const { return turn < (WORD_ELEMENTS == 2 ? TURNS + BATCH : TURNS); }

  // Stores what the step before loaded, and loads this step's share.
  device_inline void step() {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if constexpr (WORD_ELEMENTS == 2) store(chunks[i]);
      load(chunks[i]);
      if (SEGMENTS > 1 && (turn + i + 1) % SEGMENT_TURNS == 0)
        start_segment((turn + i + 1) / SEGMENT_TURNS);
      else
        advance();
    }
    turn += BATCH;
  }
  device_inline void finish() {
#pragma unroll 1
    while (pending()) step();
  }
  // Stores what is still in registers; called after the last of Lines::STEPS steps.
  device_inline void flush() {
    if constexpr (WORD_ELEMENTS == 2) {
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        store(chunks[i]);
        chunks[i].place = -1;
      }
    }
  }

 private:
  device_inline void start_segment(int segment) {
    const int position = segment * SEGMENT + thread_x() % SEGMENT;
    const int all_rows = thread_x() / SEGMENT;
    const int phase = position / LINE_CHUNKS, chunk = position % LINE_CHUNKS;
    // Threads beyond the last whole row of positions take no chunks.
    const bool takes = all_rows < ROWS_A_TURN && (SEGMENTS == 1 || position < POSITIONS);
    plane = takes ? all_rows / Lines::ROWS : X_PLANES;
    row = all_rows % Lines::ROWS;
    first = first_element - X_FRONT + chunk * (ELEMENTS * LINE_PHASES) + phase;
    from = static_cast<u32>(plane) * static_cast<u32>(SOURCE_STRIDE_C) +
           static_cast<u32>(first_h + row) * static_cast<u32>(SOURCE_STRIDE_H) +
           static_cast<u32>(first);
    to = stage + (plane * X_PLANE + row * X_ROW + phase * X_LINE + chunk * X_CHUNK) * WORD_BYTES;
  }
  device_inline void load(Chunk& chunk) const {
    const bool is_one = plane < X_PLANES;
    const bool row_exists =
        plane < planes && static_cast<u32>(first_h + row) < static_cast<u32>(SOURCE_H);
    const auto exists = [&](int element) {
      return row_exists &&
             static_cast<u32>(first + element * LINE_PHASES) < static_cast<u32>(Lines::SIZE);
    };
    const element_t* const at = opaque(image + static_cast<int>(from));
    if constexpr (WORD_ELEMENTS == 1) {
      async_copy_if<X_ACCESS>(is_one, memory + to, at, exists(0));
    } else {
      chunk.place = is_one ? to : -1;
      if constexpr (WHOLE) {
        load_words<X_CHUNK>(chunk.parts, at, is_one && exists(0));
        if constexpr (NEXT)
          chunk.parts[X_CHUNK] = load_short(at + ELEMENTS, is_one && exists(ELEMENTS));
      } else {
#pragma unroll
        for (int i = 0; i < ELEMENTS + NEXT; ++i)
          chunk.parts[i] = load_short(at + i * LINE_PHASES, is_one && exists(i));
      }
    }
  }
  device_inline void store(const Chunk& chunk) const {
    if (chunk.place < 0) return;
    struct alignas(4 * X_CHUNK) Words {
      u32 word[X_CHUNK];
    };
#pragma unroll
    for (int copy = 0; copy < COPIES; ++copy) {
      Words words;
#pragma unroll
      for (int i = 0; i < X_CHUNK; ++i) words.word[i] = chunk.word(i, COPIES == 1 ? X_SHIFT : copy);
      *reinterpret_cast<Words*>(memory + (chunk.place + copy * (X_COPY * 4))) = words;
    }
  }
  device_inline void advance() {
    constexpr int PLANES_ON = ROWS_A_TURN / Lines::ROWS, ROWS_ON = ROWS_A_TURN % Lines::ROWS;
    const auto on = [&](int planes_on, int rows_on) {
      plane += planes_on;
      row += rows_on;
      from += static_cast<u32>(planes_on) * static_cast<u32>(SOURCE_STRIDE_C) +
              static_cast<u32>(rows_on) * static_cast<u32>(SOURCE_STRIDE_H);
      to += (planes_on * X_PLANE + rows_on * X_ROW) * WORD_BYTES;
    };
    on(PLANES_ON, ROWS_ON);
    if (row >= Lines::ROWS) on(1, -Lines::ROWS);
  }
};
