// The bands of pixels that a block of a planar filter gradient walks, whichever way it multiplies:
// two stages in shared memory, of which one is multiplied while the other is loaded.
#pragma once

#include "conv/wgrad_planar_loader.cuh"

// A block's part of the reduction is a run of bands.
struct BandShare {
  u32 begin, bands;

  device_inline explicit BandShare(const WgradParams& params) {
    const u32 all = DIVIDE(DIV_OPQ, static_cast<u32>(params.pixels)) * BANDS;
    const u32 a_part = (all + cluster_size() - 1) / cluster_size();
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
  int stage = STAGE_BYTES;  // at hand, in shared memory
  int pixels = 0;

  // landed(place): once the first stage, at `place`, has landed for all.
  template <class Landed>
  device_inline StageWalk(const BandShare& part, StageLoader& stages, const Landed& landed)
      : share(part), loader(stages) {
    start_next();
    loader.load_all();
    end_stage(landed);
  }
  device_inline void start_next() {
    if (next >= share.bands) return;
    const Band band(share.begin + next);
    pixels_of_next = band.words;
    loader.start(band, STAGE_BYTES - stage);
    ++next;
  }
  template <class Landed>
  device_inline void end_stage(const Landed& landed) {
    async_commit();
    async_wait<0>();
    stage = STAGE_BYTES - stage;
    landed(stage);  // the next stage has landed for all; this one has been read by all
    pixels = pixels_of_next;
    start_next();
  }
};
