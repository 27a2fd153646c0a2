// Forward convolution and data gradient on Hopper, of channels-last tensors or, with a filter of
// one tap, channels-first ones (PLANAR). A matrix product: TMA loads the operands into shared
// memory (loads.cuh), wgmma reads them there, and TMA stores the results (output.cuh).
//
// A block has one warpgroup that issues copies and CONSUMERS that multiply. There is one persistent
// block for each multiprocessor; it takes tiles (tile.cuh) in turn, so that a tile's results are
// stored while the next one's operands are loaded.
#include "conv/dense/consume.cuh"

class StoredTile {
  const Params& params_;
  u32 group_;

 public:
  using Loads = NoLoads;
  device_inline StoredTile(const Params& params, unsigned char*, u32 group)
      : params_(params), group_(group) {}
  device_inline void store(Store& store, const Sums& sums, const Tile& tile, Ring&,
                           Barriers&) const {
    store_tile<0>(store, sums, params_, tile, group_);
  }
  device_inline void leave() const {}
};

KILN_BEGINS_STEP;

KILN_KERNEL(dense_wgmma, THREADS, 1, Params, params) { run_block<StoredTile>(params, params); }
