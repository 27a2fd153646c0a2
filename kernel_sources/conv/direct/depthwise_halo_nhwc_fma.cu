// Depthwise forward convolution and data gradient with one phase, in NHWC.
#include "conv/direct/depthwise_halo.cuh"

KILN_KERNEL(depthwise_halo_nhwc_fma, THREADS, MIN_BLOCKS, Stores::Params, params) {
  compute_tiles<Stores>(params);
}
