// The tiles of a dense convolution: rows (filters, or channels of dx) by pixels of the output that
// follow each other, in a matrix product whose reduction is walked 64 channels of a tap at a time.
//
// Either side may be the left one, whose rows the warpgroups divide among them: PIXELS_LEFT, or the
// filter's. The other one's BLOCK_RIGHT columns are all warpgroups'.
#pragma once

#include "conv/dense/params.h"
#include "target/mbarrier.cuh"

struct Params {
  DenseParams common;
  TensorMap maps[MAPS];
};

constexpr int STEP_CHANNELS = 64, LINE_BYTES = 128;  // of a row of a tile in shared memory
constexpr int GROUP_ROWS = 64 * LEFT;                // of a warpgroup on the left
constexpr int BLOCK_LEFT = CONSUMERS * GROUP_ROWS;
constexpr int TILE_PIXELS = PIXELS_LEFT ? BLOCK_LEFT : BLOCK_RIGHT;
constexpr int TILE_ROWS = PIXELS_LEFT ? BLOCK_RIGHT : BLOCK_LEFT;
constexpr int CHANNEL_STEPS = (CHANNELS + STEP_CHANNELS - 1) / STEP_CHANNELS;
constexpr int ROW_TILES = (ROWS + TILE_ROWS - 1) / TILE_ROWS;

// Shared memory: stages of both operands, slabs on their way out, barriers.
constexpr int SLAB_PIXELS = PIXELS_LEFT ? 64 : TILE_PIXELS;  // by 64 rows
device_inline constexpr int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr int LEFT_BYTES = BLOCK_LEFT * LINE_BYTES;
constexpr int RIGHT_BYTES = BLOCK_RIGHT * LINE_BYTES;
constexpr int STAGE_BYTES = LEFT_BYTES + whole_swizzles(RIGHT_BYTES);
constexpr int SLAB_BYTES = whole_swizzles(SLAB_PIXELS * LINE_BYTES);
constexpr int SLABS_AT = STAGES * STAGE_BYTES;
constexpr int BARRIERS_AT = SLABS_AT + CONSUMERS * SLABS * SLAB_BYTES;
constexpr int THREADS = 128 * (1 + CONSUMERS);
static_assert(BLOCK_LEFT % 64 == 0 && BLOCK_RIGHT % 16 == 0 && BLOCK_RIGHT <= 256);
static_assert(PIXELS_LEFT ? BLOCK_RIGHT % 64 == 0 : true);

// One tile. Rows of one pixel tile follow each other, so that L2 has its pixels.
struct Tile {
  int phase, first_row;
  u32 first_pixel;  // in the phase's output, of all images

  device_inline Tile(u32 number, const DenseParams& params) : phase(0) {
    u32 before = 0;
#pragma unroll
    for (int i = 0; i + 1 < PHASES; ++i)
      if (number >= params.tiles[i]) phase = i + 1, before = params.tiles[i];
    const u32 in_phase = number - before;
    const u32 pixel_tile = in_phase / ROW_TILES;
    first_row = static_cast<int>(in_phase - pixel_tile * ROW_TILES) * TILE_ROWS;
    first_pixel = pixel_tile * TILE_PIXELS;
  }
  device_inline int taps() const { return FILTER_R[phase] * FILTER_S[phase]; }
  device_inline int steps() const { return taps() * CHANNEL_STEPS; }
};

// {image, row, column} of a pixel of the output that follow each other.
struct PixelPlace {
  int n, p, q;
  device_inline PixelPlace(u32 pixel, int phase) {
    const u32 columns = static_cast<u32>(OUT_Q[phase]);
    const u32 image = columns * static_cast<u32>(OUT_P[phase]);
    const u32 number = pixel / image, rest = pixel - number * image;
    n = static_cast<int>(number);
    p = static_cast<int>(rest / columns);
    q = static_cast<int>(rest) - p * static_cast<int>(columns);
  }
};

// A ring of stages: which is next, and the parity of its phase.
struct Ring {
  int stage = 0;
  u32 parity;
  device_inline explicit Ring(u32 first_parity) : parity(first_parity) {}
  device_inline void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

struct Barriers {
  Mbarrier landed[STAGES], free[STAGES], residual[CONSUMERS];

  // By one thread.
  device_inline void init() {
    for (int i = 0; i < STAGES; ++i) {
      landed[i].init(1);
      free[i].init(4 * CONSUMERS);  // a warp each
    }
    for (int i = 0; i < CONSUMERS; ++i) residual[i].init(1);
    mbarriers_are_made();
  }
};
constexpr int SHARED_END = BARRIERS_AT + static_cast<int>(sizeof(Barriers));
static_assert(SHARED_END <= SHARED_BYTES);
