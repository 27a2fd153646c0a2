// The bands of pixels that a block of a planar filter gradient walks, whichever way it multiplies:
// two stages in shared memory, of which one is multiplied while the other is loaded.
#pragma once

#include "conv/wgrad/nchw_loader.cuh"

// A block's part of the reduction is a run of bands.
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
  u32 next = 0;             // band to be loaded, of the part
  int pixels_of_next = 0;   // words of them
  int stage = STAGE_BYTES;  // at hand, in shared memory; at first, none
  int pixels = 0;

  // Brings the first stage, which next_stage() makes the one at hand.
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
  // landed(place): what is left of the next stage, at `place`, has been stored by this thread.
  template <class Landed>
  device_inline void next_stage(const Landed& landed) {
    async_commit();
    async_wait<0>();
    stage = STAGE_BYTES - stage;
    landed(stage);  // it has landed for all; the one before has been read by all
    pixels = pixels_of_next;
    start_next();
  }
};
