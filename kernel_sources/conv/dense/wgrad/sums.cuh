// The sums of a dense filter gradient: tiles of dw, their layout in threads, and their stores.
//
// dw is filters (rows) by columns. Columns come in blocks of LINE_CHANNELS channels of a tap; a
// tile has BLOCK_COLUMNS consecutive blocks. Each group of channels is a dw of its own. PACKED
// narrow groups are computed as one of ROWS by CHANNELS, and only the products within a group are
// stored. A thread has QUADS groups of four sums: quad l * (BLOCK_RIGHT / 8) + r is from product
// (l, r), two neighboring columns in two rows that are 8 apart.
#pragma once

#include "common/compute_type.cuh"
#include "common/late.cuh"
#include "conv/dense/wgrad/params.h"
#include "conv/mma/scaled_sums.cuh"

constexpr int LINE_BYTES = 128;  // a line of channels of a pixel in shared memory
constexpr int LINE_CHANNELS = LINE_BYTES / static_cast<int>(sizeof(element_t));
constexpr int PRODUCTS_A_ROW = BLOCK_RIGHT / 8, PRODUCTS_A_BLOCK = LINE_CHANNELS / 8;
constexpr int QUADS = LEFT * PRODUCTS_A_ROW;
constexpr int ADDERS = 128 * CONSUMERS;  // threads that hold sums
constexpr int GROUP_ROWS = 64 * LEFT, TILE_ROWS = CONSUMERS * GROUP_ROWS;
constexpr int BLOCK_COLUMNS = BLOCK_RIGHT / LINE_CHANNELS;
static_assert(BLOCK_RIGHT % 64 == 0 && BLOCK_RIGHT <= 256);
static_assert(PACKED == 1 ||
              (GROUPS % PACKED == 0 && ROWS % PACKED == 0 && CHANNELS % PACKED == 0));

struct alignas(16) Quad {
  float sum[4];
};

// A tile's group (or pack of groups), and its first row and block of columns in that group. Tiles
// are numbered band by band of BAND_ROWS rows of tiles, in a band column by column, so that those
// of consecutive blocks have few different operands, which L2 serves once.
struct WgradTile {
  int group, row, block;
  device_inline explicit WgradTile(u32 number)
      : group(GROUPS == PACKED ? 0 : static_cast<int>(QUOTIENT(number, GROUP_TILES))) {
    const u32 of_group = REMAINDER(number, GROUP_TILES);
    const u32 band = QUOTIENT(of_group, BAND_TILES), of_band = of_group - band * BAND_TILES;
    const u32 column = QUOTIENT(of_band, BAND_ROWS);
    row = static_cast<int>(band * BAND_ROWS + of_band - column * BAND_ROWS) * TILE_ROWS;
    block = static_cast<int>(column) * BLOCK_COLUMNS;
  }
};

// A block of columns: a tap, and the first of its channels. With TAPS_SIDE_BY_SIDE the taps of the
// same channels follow each other, as in dw: they are stored one by one, and so shortly after each
// other that L2 makes whole sectors of them.
struct ColumnBlock {
  int t = 0, r = 0, s = 0, channel = 0;
  device_inline ColumnBlock() {}
  device_inline explicit ColumnBlock(int block) {
    int tap;
    if constexpr (TAPS_SIDE_BY_SIDE) {
      const int channels = QUOTIENT(block, TAPS);
      tap = block - channels * TAPS;
      channel = channels * LINE_CHANNELS;
    } else {
      tap = QUOTIENT(block, CHANNEL_BLOCKS);
      channel = (block - tap * CHANNEL_BLOCKS) * LINE_CHANNELS;
    }
    t = QUOTIENT(tap, TAPS_RS);
    r = QUOTIENT(tap, TAPS_S) - t * TAPS_R;
    s = REMAINDER(tap, TAPS_S);
  }
};

// Two neighboring channels of a quad in dw's type.
struct alignas(2 * sizeof(output_t)) ChannelPair {
  output_t element[2] = {};
  device_inline void load(const output_t* from) {
    if constexpr (DW_PAIRS) {
      *this = *reinterpret_cast<const ChannelPair*>(from);
    } else {
      element[0] = from[0];
      element[1] = from[DW_STRIDE_CHANNEL];
    }
  }
  device_inline void store(output_t* to) const {
    if constexpr (DW_PAIRS) {
      *reinterpret_cast<ChannelPair*>(to) = *this;
    } else {
      to[0] = element[0];
      to[DW_STRIDE_CHANNEL] = element[1];
    }
  }
};

// The place in dw of quad `quad` of thread `adder`: two neighboring channels of a tap, of two
// filters.
struct QuadPlace {
  ColumnBlock columns;
  int group, rows[2], channel;
  bool exists;  // whether the first channel exists
  device_inline QuadPlace(const WgradTile& tile, int quad, int adder) : group(tile.group) {
    const int left = quad / PRODUCTS_A_ROW, product = quad - left * PRODUCTS_A_ROW;
    const int lane = adder % 32, warp = adder / 32 % 4;
    const int column = product * 8 + lane % 4 * 2;
    const int block = tile.block + column / LINE_CHANNELS;
    columns = ColumnBlock(block);
    channel = columns.channel + column % LINE_CHANNELS;
    exists = block < COLUMN_BLOCKS && channel < CHANNELS;  // channels come in fours
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows[half] =
          tile.row + adder / 128 * GROUP_ROWS + left * 64 + warp * 16 + half * 8 + lane / 4;
  }
  device_inline bool has(int half) const {
    return exists && rows[half] < ROWS &&
           (PACKED == 1 || rows[half] / (ROWS / PACKED) == channel / (CHANNELS / PACKED));
  }
  device_inline output_t* in(const DenseWgradParams& params, int half) const {
    return static_cast<output_t*>(params.dw) + DW_FIRST +
           static_cast<i64>(group * ROWS + rows[half]) * DW_STRIDE_ROW + columns.t * DW_STRIDE_T +
           columns.r * DW_STRIDE_R + columns.s * DW_STRIDE_S +
           (PACKED > 1 ? channel % (CHANNELS / PACKED) : channel) *
               static_cast<i64>(DW_STRIDE_CHANNEL);
  }
};

// Stores a finished quad to dw. Returns false, and stores nothing, if scale_back() finds lost sums
// in it.
device_inline bool store_quad(const DenseWgradParams& params, const QuadPlace& place, Quad total) {
  const u32 existing = (place.has(0) ? 3u : 0u) | (place.has(1) ? 12u : 0u);
  if (!scale_back(total.sum, existing)) return false;
  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (!place.has(half)) continue;
    output_t* const to = place.in(params, half);
    ChannelPair pair;
    compute_t value[2] = {alpha * total.sum[half * 2], alpha * total.sum[half * 2 + 1]};
    if (beta != compute_t(0)) {
      pair.load(to);
      value[0] += beta * to_compute(pair.element[0]);
      value[1] += beta * to_compute(pair.element[1]);
    }
    pair.element[0] = from_compute<output_t>(value[0]);
    pair.element[1] = from_compute<output_t>(value[1]);
    pair.store(to);
  }
  return true;
}

// The address in the workspace where a group of blocks leaves the quads of a tile.
device_inline Quad* partial_quads(const DenseWgradParams& params, u32 group, u32 tile) {
  return static_cast<Quad*>(params.partials) +
         (static_cast<u64>(group) * TILES + tile) * (QUADS * ADDERS);
}
