// Brings a band of x to shared memory as lines of words: [plane][row][line]. A plane is a channel,
// or all of them where they lie side by side in a pixel. Elements that are to be neighbours are:
// those of a line lie PHASES apart in memory, a line for each remainder. Of 16 bits, where two
// elements are a word, a line may be kept once more, moved on by one element (COPIES), so that
// every two neighbours are a word in one of them.
#pragma once

#include "conv/row_loader.cuh"

// The block's threads walk the words of all lines, whatever lies where; outside x they are zero.
//
// Lines: ROWS of a plane, PHASES, WORDS of a line; SIZE, elements of a row of the source; STEPS, in
// which they are loaded. X_PLANE, X_ROW, X_LINE: words from one to the next.
template <class Lines>
struct LineLoader {
  static constexpr int LINE_PHASES = Lines::PHASES;
  static constexpr int PLANE_WORDS = Lines::ROWS * LINE_PHASES * Lines::WORDS;
  static constexpr int WORDS = X_PLANES * PLANE_WORDS;
  static constexpr int TURNS = turns_of(WORDS, THREADS);
  static constexpr int BATCH = turns_of(TURNS, Lines::STEPS);

  const element_t* x;  // at the first plane, image 0
  const element_t* image;
  byte_t* memory;
  int planes;  // from the first one on
  int first_h, first_element;
  int to;
  int turn;                // the next
  u32 elements[BATCH][3];  // of 16 bits, on their way

  device_inline LineLoader(const element_t* first_plane, int plane_count, byte_t* shared)
      : x(first_plane), memory(shared), planes(plane_count), turn(TURNS) {}

  // h, element: where the band begins; outside x, it may be.
  device_inline void start(u32 of_image, int h, int element, int place) {
    image = x + static_cast<i64>(of_image) * SOURCE_STRIDE_N;
    first_h = h;
    first_element = element;
    to = place;
    turn = 0;
  }
  device_inline bool pending() const { return turn < TURNS; }

  struct Word {
    int plane, row, phase, number;
    device_inline explicit Word(int of_all) {
      plane = of_all / PLANE_WORDS;
      const int rest = of_all - plane * PLANE_WORDS, line = rest / Lines::WORDS;
      number = rest - line * Lines::WORDS;
      row = line / LINE_PHASES;
      phase = line - row * LINE_PHASES;
    }
    // Of the first copy.
    device_inline int place() const {
      return (plane * X_PLANE + row * X_ROW + phase * COPIES * X_LINE + number) * 4;
    }
  };

  // A step's share.
  device_inline void load() {
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const int of_all = thread_x() + (turn + i) * THREADS;
      if (of_all >= WORDS) continue;
      const Word word(of_all);
      const int h = first_h + word.row;
      const int first = first_element + word.number * (WORD_ELEMENTS * LINE_PHASES) + word.phase;
      const bool row_exists =
          word.plane < planes && static_cast<u32>(h) < static_cast<u32>(SOURCE_H);
      const element_t* const from =
          opaque(image + (static_cast<offset_t>(word.plane) * SOURCE_STRIDE_C +
                          static_cast<offset_t>(h) * SOURCE_STRIDE_H + first));
      const auto exists = [&](int element) {
        return row_exists &&
               static_cast<u32>(first + element * LINE_PHASES) < static_cast<u32>(Lines::SIZE);
      };
      if constexpr (WORD_ELEMENTS == 1) {
        async_copy<4>(memory + (to + word.place()), from, exists(0));
      } else {
#pragma unroll
        for (int j = 0; j <= COPIES; ++j)
          elements[i][j] = exists(j) ? load_short(from + j * LINE_PHASES) : 0;
      }
    }
  }
  device_inline void store() {
    if constexpr (WORD_ELEMENTS == 2) {
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int of_all = thread_x() + (turn + i) * THREADS;
        if (of_all >= WORDS) continue;
        byte_t* const at = memory + (to + Word(of_all).place());
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy)
          *reinterpret_cast<u32*>(at + copy * (X_LINE * 4)) =
              elements[i][copy] | elements[i][copy + 1] << 16;
      }
    }
    turn += BATCH;
  }
};
