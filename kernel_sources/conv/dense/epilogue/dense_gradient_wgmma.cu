// The passes of dense_wgmma.cu that take the gradient of an activation behind a normalization as
// well (tile_gradient.cuh): channels last, one phase, sums that need no promotion, results that TMA
// stores.
#include "conv/dense/consume.cuh"
#include "conv/dense/epilogue/tile_gradient.cuh"

static_assert(PROMOTE == 0 && !PLANAR && STORE_PIXELS == 0 && !MAY_LACK_TAPS);

KILN_BEGINS_STEP;

KILN_KERNEL(dense_gradient_wgmma, THREADS, 1, GradientParams, params) {
  run_block<TileGradient>(params.dense, params);
}
