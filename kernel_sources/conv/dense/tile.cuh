// The tiles of a dense convolution: rows (filters, or channels of dx) by consecutive pixels of the
// output. A step of the reduction is STEP_CHANNELS channels of a tap, a line of shared memory.
// Neither a step nor a tile reaches from one group of channels into the next.
//
// Operand A, which the warpgroups divide among them, is the pixels (PIXELS_LEFT) or the filter. All
// warpgroups read all BLOCK_RIGHT columns of operand B, the other one.
//
// PLANAR: channels-first tensors, for filters of one tap. A tile's pixels are of one image, or of
// IMAGES small ones. They are stored in shared memory as loaded, PIXEL_LINE pixels of a channel in
// a line. wgmma transposes 16-bit pixels; it does not transpose f32, so f32 pixels are operand A
// and go through registers (LEFT_IN_WORDS, pixel_words.cuh).
//
// STORE_PIXELS above 0: the source is channels-last, but the output has another layout, such as
// channels first. Threads then store the results, STORE_PIXELS contiguous pixels at a time. At 0,
// TMA stores them, rows of a pixel being contiguous.
//
// MATRICES above 1: a batch of matrix products, whose rows are images of one pixel. A tile is of
// one matrix, which the copies name in place of a column: the maps have the matrices as columns.
#pragma once

#include "common/compute_type.cuh"
#include "common/late.cuh"
#include "conv/dense/box.cuh"
#include "conv/dense/params.h"
#include "target/mbarrier.cuh"

struct Params {
  DenseParams common;
  TensorMap maps[MAPS];
};

constexpr int LINE_BYTES = STEP_CHANNELS * static_cast<int>(sizeof(element_t));  // line of operands
constexpr int ROW_LINE_BYTES = ROW_LINE * static_cast<int>(sizeof(element_t));
constexpr int GROUP_ROWS = 64 * LEFT;  // rows of operand A of a warpgroup
constexpr int BLOCK_LEFT = CONSUMERS * GROUP_ROWS;
constexpr int TILE_PIXELS = PIXELS_LEFT ? BLOCK_LEFT : BLOCK_RIGHT;
constexpr int TILE_ROWS = PIXELS_LEFT ? BLOCK_RIGHT : BLOCK_LEFT;
static_assert(GROUPS == 1 || (CHANNELS % STEP_CHANNELS == 0 && ROWS % TILE_ROWS == 0));

constexpr int PIXEL_LINE_BYTES = 128;
constexpr int PIXEL_LINE = PIXEL_LINE_BYTES / static_cast<int>(sizeof(element_t));
constexpr int PIXEL_LINES = (TILE_PIXELS + PIXEL_LINE - 1) / PIXEL_LINE;  // lines of a channel
constexpr int PIXEL_LINE_BLOCK = STEP_CHANNELS * PIXEL_LINE_BYTES;
constexpr int IMAGE_PIXELS = TILE_PIXELS / IMAGES;  // pixels of each image in a tile
constexpr bool LEFT_IN_WORDS = PLANAR && sizeof(element_t) == 4;
static_assert(!PLANAR || ((sizeof(element_t) == 2 || PIXELS_LEFT) && PHASES == 1));
static_assert(MATRICES == 1 || (PHASES == 1 && SPACE == 2 && STORE_PIXELS == 0 && !PLANAR));
static_assert(IMAGES == 1 || (IMAGE_PIXELS == PIXEL_LINE && PLANE_TILES == 1));

// Shared memory holds stages of both operands, slabs of results, and barriers.
constexpr bool LINES_OF_PIXELS = PLANAR || STORE_PIXELS > 0;
constexpr bool LINES_LEFT = PIXELS_LEFT != LINES_OF_PIXELS;
constexpr int SLAB_LINE = LINES_OF_PIXELS ? SLAB_PIXEL_LINE : RESULT_LINE;
constexpr int SLAB_LINES = LINES_LEFT ? 64 : BLOCK_RIGHT;
constexpr int SLAB_BLOCKS = LINES_LEFT ? 1 : 64 / SLAB_LINE;
device_inline constexpr int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr int PIXEL_BYTES = PLANAR ? PIXEL_LINES * PIXEL_LINE_BLOCK : TILE_PIXELS * LINE_BYTES;
constexpr int LEFT_BYTES = PIXELS_LEFT ? PIXEL_BYTES : BLOCK_LEFT * LINE_BYTES;
constexpr int RIGHT_BYTES = PIXELS_LEFT ? BLOCK_RIGHT * LINE_BYTES : PIXEL_BYTES;
constexpr int STAGE_BYTES = LEFT_BYTES + whole_swizzles(RIGHT_BYTES);
constexpr int SLAB_BYTES =
    whole_swizzles(SLAB_LINES * SLAB_BLOCKS * SLAB_LINE * static_cast<int>(sizeof(element_t)));
constexpr int SLABS_AT = STAGES * STAGE_BYTES;
constexpr int BARRIERS_AT = SLABS_AT + CONSUMERS * SLABS * SLAB_BYTES;
constexpr int THREADS = 128 * (1 + CONSUMERS);

static_assert(BLOCK_LEFT % 64 == 0 && BLOCK_RIGHT % 16 == 0 && BLOCK_RIGHT <= 256);
static_assert(!PLANAR || STORE_PIXELS == 0);
static_assert(!PHASES_JOINED || (PIXELS_LEFT && STORE_PIXELS == 0 && GROUPS == 1 && !BIAS &&
                                 ROWS % RESULT_LINE == 0));
static_assert(TILE_ROWS % ROW_LINE == 0 && BLOCK_RIGHT % (LINES_LEFT ? SLAB_LINE : 16) == 0);

// Indices of the tensor maps.
constexpr int PHASE_MAPS = STORE_PIXELS > 0 ? 2 : 3;
device_inline constexpr int source_map(int phase) { return phase * PHASE_MAPS; }
device_inline constexpr int filter_map(int phase) { return phase * PHASE_MAPS + 1; }
device_inline constexpr int output_map(int phase) { return phase * PHASE_MAPS + 2; }
device_inline constexpr int residual_map(int phase) {
  return RESIDUAL ? PHASES * PHASE_MAPS : output_map(phase);
}

// One tile. Tiles of the same pixels and other rows follow each other, so that the pixels hit L2.
// PHASES_TOGETHER: the phases have equally many tiles, and those of the same source follow each
// other too. PHASES_JOINED: a tile's rows are those of several phases, which read the same pixels.
struct Tile {
  int phase, first_row;  // first_row counts the rows of all groups
  int image;             // PLANAR: the tile's first image
  int matrix = 0;        // of MATRICES
  u32 first_pixel;       // counted in the phase's output over all images; PLANAR: in the plane

  device_inline Tile(u32 number, const DenseParams& params) : phase(0), image(0) {
    u32 in_phase = number;
    if constexpr (MATRICES > 1) {
      const u32 tiles = params.tiles[0] / MATRICES;
      const u32 of_batch = number / tiles;
      in_phase = number - of_batch * tiles;
      matrix = static_cast<int>(of_batch);
    } else if constexpr (PHASES_TOGETHER) {
      in_phase = number / PHASES;
      phase = static_cast<int>(number - in_phase * PHASES);
    } else if constexpr (!PHASES_JOINED) {
#pragma unroll
      for (int i = 0; i + 1 < PHASES; ++i)
        if (number >= params.tiles[i]) phase = i + 1, in_phase = number - params.tiles[i];
    }
    const u32 pixel_tile = QUOTIENT(in_phase, ROW_TILES);
    first_row = static_cast<int>(in_phase - pixel_tile * ROW_TILES) * TILE_ROWS;
    if constexpr (PLANAR) {
      const u32 images = pixel_tile / PLANE_TILES;
      image = static_cast<int>(images) * IMAGES;
      first_pixel = (pixel_tile - images * PLANE_TILES) * IMAGE_PIXELS;
    } else {
      first_pixel = pixel_tile * TILE_PIXELS;
    }
  }
  device_inline int group() const { return GROUPS == 1 ? 0 : first_row / ROWS; }
  device_inline int taps() const { return FILTER_T[phase] * FILTER_R[phase] * FILTER_S[phase]; }
  device_inline int steps() const { return taps() * CHANNEL_STEPS; }
};

// {image, plane, row, column} of the pixel with a given number.
struct PixelPlace {
  int n, o = 0, p, q;
  device_inline PixelPlace(u32 pixel, int phase) {
    const u32 columns = static_cast<u32>(OUT_Q[phase]);
    const u32 plane = columns * static_cast<u32>(OUT_P[phase]);
    const u32 number = pixel / plane, rest = pixel - number * plane;
    n = static_cast<int>(number);
    if constexpr (SPACE == 3) {
      n = static_cast<int>(number / static_cast<u32>(OUT_O[phase]));
      o = static_cast<int>(number) - n * OUT_O[phase];
    }
    p = static_cast<int>(rest / columns);
    q = static_cast<int>(rest) - p * static_cast<int>(columns);
  }
};

// A ring of stages: the next stage, and the parity of its phase.
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

  // Called by one thread.
  device_inline void init() {
    for (int i = 0; i < STAGES; ++i) {
      landed[i].init(1);
      free[i].init(4 * CONSUMERS);  // one arrival of each consumer warp
    }
    for (int i = 0; i < CONSUMERS; ++i) residual[i].init(1);
    mbarriers_are_made();
  }
};
constexpr int SHARED_END = BARRIERS_AT + static_cast<int>(sizeof(Barriers));
static_assert(SHARED_END <= SHARED_BYTES);
