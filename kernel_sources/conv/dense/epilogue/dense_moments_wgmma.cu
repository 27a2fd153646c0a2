// The forward pass of dense_wgmma.cu that makes the moments of each channel of its result as well
// (tile_moments.cuh): channels last, one phase, sums that need no promotion, results that TMA
// stores.
#include "conv/dense/consume.cuh"
#include "conv/dense/epilogue/tile_moments.cuh"

static_assert(PROMOTE == 0 && !PLANAR && STORE_PIXELS == 0 && !MAY_LACK_TAPS);

KILN_BEGINS_STEP;

KILN_KERNEL(dense_moments_wgmma, THREADS, 1, MomentsParams, params) {
  run_block<TileMoments>(params.dense, params);
}
