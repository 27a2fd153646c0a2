// Copies rows from global to shared memory. A thread copies the same position of every
// ROWS_A_TURN-th row. The copies are spread over the steps before the ones that need them. What
// passes through registers is stored one step after it was loaded, so that no thread waits for
// memory.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/tf32_split.cuh"
#include "target/async_copy.cuh"
#include "target/vector_access.cuh"

device_inline constexpr int turns_of(int count, int turns) { return (count + turns - 1) / turns; }

// Copies in flight, each of BYTES contiguous bytes. Elements of 2 bytes wait in registers; a word
// is made of two of them, which are `apart` elements apart in memory. With LO, f32 words also wait
// in registers, and are stored as a hi part and, LO bytes further, a lo part.
template <int COUNT, int BYTES, int LO = 0>
struct Copies {
  static constexpr bool WAIT = BYTES == 2 || LO > 0;
  static_assert(LO == 0 || BYTES == 4);

  u32 waiting[WAIT ? COUNT : 1][LO > 0 ? 1 : 2] = {};

  // active: whether there is such a copy. elements: how many of its elements exist (all or none if
  // they are copied at once). WHOLE: all exist.
  template <bool WHOLE = false>
  device_inline void load(int index, bool active, byte_t* to, const element_t* from, offset_t apart,
                          int elements) {
    if constexpr (BYTES == 2 && WHOLE) {
      load_short_if(active, waiting[index][0], from);
      load_short_if(active, waiting[index][1], from + apart);
    } else if constexpr (BYTES == 2) {
      waiting[index][0] = load_short(from, active && elements > 0);
      waiting[index][1] = load_short(from + apart, active && elements > 1);
    } else if constexpr (LO > 0) {
      load_words<1>(waiting[index], from, active && (WHOLE || elements > 0));
    } else {
      async_copy_if<BYTES>(active, to, from, WHOLE || elements > 0);
    }
  }
  device_inline void store(int index, byte_t* to) const {
    if constexpr (LO > 0) {
      const HiLo parts = parts_of(index);
      *reinterpret_cast<float*>(to) = parts.hi;
      *reinterpret_cast<float*>(to + LO) = parts.lo;
    } else if constexpr (BYTES == 2) {
      *reinterpret_cast<u32*>(to) = word(index);
    }
  }
  // Stores four consecutive copies as 16 bytes.
  device_inline void store_four(int index, byte_t* to) const {
    struct alignas(16) Four {
      u32 word[4];
    };
    if constexpr (LO > 0) {
      Four hi, lo;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const HiLo parts = parts_of(index + i);
        hi.word[i] = bits_of(parts.hi), lo.word[i] = bits_of(parts.lo);
      }
      *reinterpret_cast<Four*>(to) = hi;
      *reinterpret_cast<Four*>(to + LO) = lo;
    } else if constexpr (BYTES == 2) {
      *reinterpret_cast<Four*>(to) = {
          {word(index), word(index + 1), word(index + 2), word(index + 3)}};
    }
  }

 private:
  device_inline HiLo parts_of(int index) const { return split(float_of(waiting[index][0])); }
  device_inline u32 word(int index) const {
    return pack_shorts(waiting[index][0], waiting[index][1]);
  }
};

// Copies TILE_M rows of POSITIONS copies each, in STEPS steps. Rows are PITCH bytes apart in shared
// memory and `row_step` elements in global memory. WHOLE: all rows and elements exist. LO: see
// Copies.
template <int POSITIONS, int BYTES, int PITCH, int STEPS, bool WHOLE = false, int LO = 0>
struct RowLoader {
  static constexpr int ROWS_A_TURN = THREADS / POSITIONS;
  static_assert(ROWS_A_TURN > 0);
  static constexpr int BATCH = turns_of(turns_of(TILE_M, ROWS_A_TURN), STEPS);
  // The rows of a step are all inside the tile or all outside, so one test suffices.
  static constexpr bool EVEN = TILE_M % (BATCH * ROWS_A_TURN) == 0;

  const element_t* operand;  // at this thread's first row and position
  byte_t* place;             // address of the thread's first row in the first stage
  offset_t row_step, apart;
  offset_t from;  // offset of the next row
  byte_t* to;     // address of that row in shared memory
  int rows;       // rows that exist, from the tile's first on
  int elements;   // elements of the thread's position that exist
  int row;        // the next row to load
  int waiting;    // first row of the previous step's copies, which are not stored yet
  using Words = Copies<BATCH, BYTES, LO>;
  // The steps until all rows are stored.
  static constexpr int ALL_STEPS = STEPS + (Words::WAIT ? 1 : 0);
  Words copies;

  device_inline static int position() { return thread_x() % POSITIONS; }
  device_inline static int first_row() { return thread_x() / POSITIONS; }

  // first, first_place: this thread's position in the tile's first row, in global memory and as an
  // offset in shared memory.
  device_inline RowLoader(const element_t* first, int first_place, offset_t to_next_row,
                          offset_t to_next_element, int row_count, byte_t* shared)
      : operand(first + static_cast<offset_t>(first_row()) * to_next_row),
        place(shared + (first_place + first_row() * PITCH)),
        row_step(to_next_row),
        apart(to_next_element),
        from(0),
        to(place),
        rows(row_count),
        elements(0),
        row(TILE_M),
        waiting(TILE_M) {}

  device_inline void start(offset_t offset, int stage, int existing) {
    from = offset;
    to = place + stage;
    elements = existing;
    // Threads beyond the last whole row of positions take no rows.
    row = first_row() < ROWS_A_TURN ? first_row() : TILE_M;
  }

  // Issues a share of a step's copies.
  template <int SHARES>
  device_inline void load(int share) {
    const element_t* const first = opaque(operand + from);
#pragma unroll
    for (int i = share * BATCH / SHARES; i < (share + 1) * BATCH / SHARES; ++i) {
      store(i);
      const bool exists = ROWS % TILE_M == 0 || row + i * ROWS_A_TURN < rows;
      copies.template load<WHOLE>(i, in_tile(row, i), to + i * (ROWS_A_TURN * PITCH),
                                  first + static_cast<offset_t>(i * ROWS_A_TURN) * row_step, apart,
                                  exists ? elements : 0);
    }
  }
  // Ends a step.
  device_inline void advance() {
    waiting = row;
    if (row >= TILE_M) return;
    row += BATCH * ROWS_A_TURN;
    to += BATCH * ROWS_A_TURN * PITCH;
    from += static_cast<offset_t>(BATCH * ROWS_A_TURN) * row_step;
  }
  device_inline void load_all() {
#pragma unroll 1
    for (int i = 0; i < ALL_STEPS; ++i) load<1>(0), advance();
  }

 private:
  device_inline static bool in_tile(int first, int i) {
    return (EVEN ? first : first + i * ROWS_A_TURN) < TILE_M;
  }
  device_inline void store(int i) const {
    if constexpr (Words::WAIT)
      if (in_tile(waiting, i)) copies.store(i, to + (i - BATCH) * (ROWS_A_TURN * PITCH));
  }
};
