// The accumulators of a TILE_M x TILE_N tile of a matrix product, THREAD_M x THREAD_N in each
// thread's registers, and how they get to the epilogue.
//
// A tile's reduction may be split over SLICES slices of a block (SLICE_THREADS threads each, which
// take turns at its steps of TILE_K) and over the blocks of a cluster (consecutive steps each). At
// the end, each part adds up its share of all partial sums, by rank, then by slice, so the bits
// never depend on timing.
#pragma once

#include "target/cluster.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = SLICES * SLICE_THREADS;

device_inline int slice() { return SLICES == 1 ? 0 : thread_x() / SLICE_THREADS; }
device_inline int slice_thread() { return SLICES == 1 ? thread_x() : thread_x() % SLICE_THREADS; }

// A warp is LANES_M x LANES_N threads. A thread's rows are runs of RUN_M neighbours, and its
// columns runs of RUN_N; between two runs of a thread are those of the other lanes.
constexpr int WARP_M = LANES_M * THREAD_M;
constexpr int WARP_N = LANES_N * THREAD_N;
static_assert(LANES_M * LANES_N == 32);
static_assert((TILE_M / WARP_M) * (TILE_N / WARP_N) * 32 == SLICE_THREADS);
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0);
static_assert(THREAD_M % RUN_M == 0 && THREAD_N % RUN_N == 0);

// The offset of a thread's row or column i from its first one.
device_inline constexpr int row_step(int i) { return i / RUN_M * (LANES_M * RUN_M) + i % RUN_M; }
device_inline constexpr int column_step(int i) { return i / RUN_N * (LANES_N * RUN_N) + i % RUN_N; }

struct Position {  // the position of a thread's first element in the tile
  int m, n;
};
device_inline Position thread_position(int thread) {
  constexpr int WARPS_N = TILE_N / WARP_N;
  const int warp = thread / 32, lane = thread % 32;
  return {warp / WARPS_N * WARP_M + lane / LANES_N * RUN_M,
          warp % WARPS_N * WARP_N + lane % LANES_N * RUN_N};
}

// Sums, the accumulators of the chosen way to multiply, has a member `registers`
// (target/sum_registers.cuh) and a LinePlace, which gives each sum's line and its index in the
// line.

// The epilogue processes a thread's accumulators line by line: rows of THREAD_N or, with
// LINES_ALONG_M, columns of THREAD_M, whichever are contiguous in the output. The loop is rolled,
// which keeps code and compile time small. Registers cannot be indexed, so lines go through shared
// memory. Where none is free, the loop always takes the first line and moves the others up by one
// (register_store.cuh).
constexpr int LINES = LINES_ALONG_M ? THREAD_N : THREAD_M;
constexpr int LINE = LINES_ALONG_M ? THREAD_M : THREAD_N;
// The contiguous elements of a line, and how many of them one access takes.
constexpr int LINE_RUN = LINES_ALONG_M ? RUN_M : RUN_N;
constexpr int ACCESS = LINE_RUN < VECTOR ? LINE_RUN : VECTOR;

// A long line is stored in pieces, also by a rolled loop; smaller pieces would wait for each other
// between shared memory and the output.
constexpr int PIECE = LINE > 12 && LINE % 8 == 0 ? 8 : LINE, PIECES = LINE / PIECE;
static_assert(PIECE % LINE_RUN == 0);

// Copies the entries of the piece that begins at element `first`, from an array with one entry for
// every RUN elements of a line.
template <int RUN, class T>
device_inline void take_piece(T (&piece)[PIECE / RUN], const T (&line)[LINE / RUN], int first) {
#pragma unroll
  for (int i = 0; i < PIECE / RUN; ++i) {
    piece[i] = line[i];
#pragma unroll
    for (int k = 1; k < PIECES; ++k)
      if (first == k * PIECE) piece[i] = line[k * (PIECE / RUN) + i];
  }
}

// Which sums of a line a thread takes out of the exchange, where consecutive sums of a thread are
// PITCH apart. With OwnSums, each thread takes its own.
struct OwnSums {
  static constexpr bool OF_OTHERS = false;
  static constexpr int PITCH = THREADS;
  // The index of the first sum that this thread takes, and the distance from there to element i.
  device_inline static int first() { return slice_thread(); }
  device_inline static constexpr int element(int i) { return i * PITCH; }
};

// With NeighboursSums, neighbouring threads take neighbouring columns: the warp takes the columns
// of its rows in order, 32 sums at a time. It is for rows that are not stored in vectors.
struct NeighboursSums {
  static constexpr bool OF_OTHERS = true;
  // How many consecutive elements of a thread are in one row, and how many rows a warp takes at a
  // time.
  static constexpr int ALONG_ROW = WARP_N > 32 ? WARP_N / 32 : 1;
  static constexpr int ROWS_AT_ONCE = WARP_N > 32 ? 1 : 32 / WARP_N;
  // Whether that divides rows evenly, so that a thread's columns are the same in all rows.
  static constexpr bool EVEN = 32 % (LANES_N * RUN_N) == 0 && PIECE % ALONG_ROW == 0 &&
                               (32 % WARP_N == 0 || WARP_N % 32 == 0);
  // The 32 sums that a warp takes at a time are in different banks.
  static constexpr int PITCH = THREADS + LANES_N * ROWS_AT_ONCE;

  device_inline static int first() {
    const int lane = static_cast<int>(thread_x() % 32), column = first_column();
    const int owners_sum = column / (LANES_N * RUN_N) * RUN_N + column % RUN_N;
    return slice_thread() - lane + owners_sum * PITCH + first_row() * LANES_N +
           column / RUN_N % LANES_N;
  }
  device_inline static constexpr int element(int i) {
    return row(i) * LANES_N + i % ALONG_ROW * (32 / LANES_N * PITCH);
  }

  // The position of element i relative to the warp's first sum of the line: columns, and runs of
  // RUN_M rows.
  device_inline static int first_row() { return static_cast<int>(thread_x() % 32) / WARP_N; }
  device_inline static int first_column() { return static_cast<int>(thread_x() % 32) % WARP_N; }
  device_inline static constexpr int row(int i) { return i / ALONG_ROW * ROWS_AT_ONCE; }
  device_inline static constexpr int column(int i) { return i % ALONG_ROW * 32; }
};

// The index of a thread's sum in an exchange that begins with its first one.
template <class LinePlace, int PITCH>
struct ExchangePlace : LinePlace {
  device_inline static constexpr int of(int l, int r, int c) {
    return (LinePlace::line(l, r, c) * LINE + LinePlace::in_line(l, r, c)) * PITCH;
  }
};
// Writes COUNT lines from `line` on to the exchange.
template <int COUNT, int PITCH, class Sums>
device_inline void put_lines(const Sums& sums, u32 line, compute_t* exchange) {
  using Place = ExchangePlace<typename Sums::LinePlace, PITCH>;
  if constexpr (COUNT < LINES)
    sums.registers.template put_lines<Place, COUNT>(exchange, line);
  else
    sums.registers.template put<Place>(exchange);
}

// Adds up the partial sums of all parts, by rank, then by slice, and calls store(piece, line, first
// element) once for every piece of every line, then store.finish(). Each part takes a share of the
// lines, each thread the sums that Store::Taken selects. `exchange` is shared memory for ELEMENTS
// values; no thread of the block may still write to it.
template <int ELEMENTS, class Sums, class Store>
device_inline void reduce_and_store(const Sums& sums, compute_t* exchange, Store store) {
  using Taken = typename Store::Taken;
  constexpr int LINE_PITCH = LINE * Taken::PITCH;
  constexpr int HELD = ELEMENTS / LINE_PITCH;  // lines that fit into the exchange
  constexpr int BATCH = HELD < LINES ? HELD : LINES;
  static_assert(BATCH >= 1);
  // How many parts' sums are loaded at a time, as many as registers allow, because those of another
  // multiprocessor take long.
  constexpr u32 AT_ONCE = PIECE <= 4 ? 4 : PIECE <= 8 ? 2 : 1;
  const u32 parts = cluster_size() * SLICES;
  compute_t* const mine = exchange + thread_x();
  block_barrier();  // all threads have read their stages
#pragma unroll 1
  for (u32 first = 0; first < LINES; first += BATCH) {
    const u32 end = LINES - first < BATCH ? LINES : first + BATCH;
    put_lines<BATCH, Taken::PITCH>(sums, first, mine - static_cast<int>(first) * LINE_PITCH);
    if (parts > 1)
      cluster_barrier();
    else if (Taken::OF_OTHERS)
      warp_barrier();
#pragma unroll 1
    for (u32 at = (first + cluster_rank() * SLICES + slice()) * PIECES; at < end * PIECES;) {
      const u32 index = at / PIECES;
      const int element = static_cast<int>(at % PIECES) * PIECE;
      // The next piece, or the first one of the next line.
      at = element + PIECE < LINE ? at + 1 : (index + parts) * PIECES;
      compute_t piece[PIECE];
#pragma unroll
      for (int i = 0; i < PIECE; ++i) piece[i] = 0;
      const compute_t* const first_part = exchange + (static_cast<int>(index - first) * LINE_PITCH +
                                                      Taken::first() + Taken::element(element));
#pragma unroll 1
      for (u32 part = 0; part < parts; part += AT_ONCE) {
        compute_t theirs[AT_ONCE][PIECE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
          const bool exists = part + k < parts;
          const u32 number = exists ? part + k : part;
          const compute_t* const sum =
              cluster_shared(first_part, number / SLICES) + number % SLICES * SLICE_THREADS;
#pragma unroll
          for (int i = 0; i < PIECE; ++i)
            theirs[k][i] = exists ? sum[Taken::element(i)] : compute_t(0);
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k)
#pragma unroll
          for (int i = 0; i < PIECE; ++i) piece[i] += theirs[k][i];
      }
      store(piece, static_cast<int>(index), element);
    }
    // Only after this may the exchange be overwritten or its block exit.
    if (parts > 1)
      cluster_barrier();
    else if (Taken::OF_OTHERS)
      warp_barrier();
  }
  store.finish();
}
