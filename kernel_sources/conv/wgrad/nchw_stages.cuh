// The pipeline of a planar filter gradient, for mma.sync and wgmma: a block walks over bands of
// pixels (band.cuh), with two stages in shared memory. One is multiplied while the other is loaded.
#pragma once

#include "conv/wgrad/nchw_loader.cuh"

// A block's part of the reduction: consecutive bands.
struct BandShare {
  u32 begin, bands;

  device_inline explicit BandShare(const WgradParams& params) {
    const u32 all = DIVIDE(DIV_OPQ, static_cast<u32>(params.pixels)) * BANDS;
    const u32 a_part = cluster_share(all);
    begin = cluster_rank() * a_part;
    const u32 left = begin < all ? all - begin : 0;
    bands = left < a_part ? left : a_part;
  }
};

struct StageWalk {
  const BandShare& share;
  StageLoader& loader;
  u32 next = 0;             // the next band to load, counted in the block's part
  int pixels_of_next = 0;   // words of pixels in that band
  int stage = STAGE_BYTES;  // offset of the current stage; at first there is none
  int pixels = 0;

  // Loads the first stage. next_stage() then makes it the current one.
  device_inline StageWalk(const BandShare& part, StageLoader& stages)
      : share(part), loader(stages) {
    start_next();
    loader.load_all();
  }
  device_inline void start_next() {
    if (next >= share.bands) return;
    const Band band(share.begin + next);
    pixels_of_next = band.words;
    loader.start(band, STAGE_BYTES - stage);
    ++next;
  }
  // Ends the current stage and makes the next one current. It calls landed(stage) when this
  // thread's copies to that stage, an offset in shared memory, have landed.
  template <class Landed>
  device_inline void next_stage(const Landed& landed) {
    async_commit();
    async_wait<0>();
    stage = STAGE_BYTES - stage;
    landed(stage);  // waits until all threads have landed this stage and read the previous one
    pixels = pixels_of_next;
    start_next();
  }
};
