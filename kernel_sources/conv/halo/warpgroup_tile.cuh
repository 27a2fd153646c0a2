// The part of a tile that a warpgroup computes: 64 rows, WARP_N columns.
#pragma once

#include "conv/halo/pixel_tile.cuh"
#include "target/wgmma.cuh"

static_assert(WARP_M == 16 && TILE_M % 64 == 0 && TILE_N % WARP_N == 0 && WARP_N % 8 == 0);
constexpr int GROUPS_N = TILE_N / WARP_N;  // warpgroups along the columns
static_assert(STRIPS <= 1 || STRIPS == GROUPS_N);

device_inline int warpgroup_m() { return static_cast<int>(thread_x()) / 128 / GROUPS_N; }
device_inline int warpgroup_n() { return static_cast<int>(thread_x()) / 128 % GROUPS_N; }

// The position of a thread's first sum in the tile.
device_inline Position warpgroup_position() {
  const int lane = static_cast<int>(thread_x()) % 32, warp = static_cast<int>(thread_x()) / 32 % 4;
  return {warpgroup_m() * 64 + warp * WARP_M + lane / LANES_N * RUN_M,
          warpgroup_n() * WARP_N + lane % LANES_N * RUN_N};
}

// A chunk's pixels in shared memory: planes of 16 bytes of channels, the pixels of a plane one
// after the other. So any 8 neighbouring pixels form a core matrix for wgmma.
constexpr int PLANE_BYTES = HALO_PLANE * 16;
constexpr int HALO_BYTES = CHUNK_STEPS * 2 * PLANE_BYTES;
static_assert(HALO_PLANE >= HALO_PIXELS);

// The halo place of the warpgroup's first column.
device_inline int first_pixel_of_group() {
  return warpgroup_n() * (STRIPS > 1 ? 8 : WARP_N / 8 * NEXT_PIXELS);
}
// All pixels of the warpgroup over the first 32 bytes of a chunk's channels, at the topmost,
// leftmost tap. `halos` is the first halo.
device_inline SharedMatrix pixel_matrix(const unsigned char* halos) {
  return SharedMatrix(halos + first_pixel_of_group() * 16, PLANE_BYTES, NEXT_PIXELS * 16);
}
