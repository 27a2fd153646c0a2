// The pipeline of an NCHW tile: two halos, and two groups of TAP_GROUP taps of the filter in shared
// memory. The steps that multiply one group load the next group and part of the next chunk's halo;
// threads meet at a barrier only when a group lands.
#pragma once

#include "conv/halo/planar_loader.cuh"

template <class Layout>
struct PlanarStages {
  static constexpr int GROUP = TAP_GROUP * Layout::TAP;  // bytes of a group of taps
  static constexpr bool WAIT = PlanarHaloLoader<Layout>::Words::WAIT;

  const TapWindow& window;
  PlanarHaloLoader<Layout>& halo;
  PlanarFilterLoader<Layout>& filter;
  int filters_at;  // offset of the first group in shared memory
  int last_chunk;
  Step step;                       // the current step
  Step next;                       // first step of the next group to load
  int tap = 0;                     // number of the current tap in the group
  int groups_left;                 // groups to multiply, including the current one
  int filter_at = 0, halo_at = 0;  // offsets of the step's tap, from filters_at, and of its halo
  int load_at = 0;                 // offset of the next group to load, from filters_at

  // Walks over groups begin <= k < end.
  device_inline PlanarStages(const TapWindow& of_tile, PlanarHaloLoader<Layout>& halo_loader,
                             PlanarFilterLoader<Layout>& filter_loader, int filters, int begin,
                             int end)
      : window(of_tile),
        halo(halo_loader),
        filter(filter_loader),
        filters_at(filters),
        last_chunk((end - 1) / (of_tile.taps() / TAP_GROUP)),
        step(Step::number(begin * TAP_GROUP, of_tile)),
        next(step),
        groups_left(end - begin) {}

  // Loads the first group and its halo and starts the next ones (ONE_STEP: also loads a step's
  // share of them). The first have landed for all threads when land() returns.
  template <bool ONE_STEP, class Land>
  device_inline void fill(const Land& land) {
    if (groups_left > 0) {
      start_group();
      halo.start(step.chunk, halo_at);
      bool first = true;
#pragma unroll 1
      for (int i = 0; first; ++i) {
        first = i < filter.loader.ALL_STEPS || halo.pending();
        if (!first) start_ahead(true);
        if (first || ONE_STEP) load();
      }
    }
    land();
  }

  // Loads a share of what the current group has to load; PARTS shares are a step's part of the
  // filter.
  template <int PARTS>
  device_inline void load_filter(int part) {
    filter.loader.template load<PARTS>(part);
  }
  device_inline void load() {
    load_filter<1>(0);
    load_halo();
    filter.loader.advance();
  }
  // Loads a step's share of the next chunk's halo or, in the last step of a chunk, all that is
  // left. Loads through registers would stall in that loop, so end_step() does those.
  device_inline void load_halo() {
    const bool rest = step.r + 1 == window.r.end && step.s + 1 == window.s.end;
#pragma unroll 1
    do halo.step();
    while (!WAIT && rest && halo.pending());
  }

  // The offset of the current group from filters_at, in bytes.
  device_inline int group_at() const { return filter_at < GROUP ? 0 : GROUP; }

  // Ends a group: land() makes the next group visible to all threads, at filter_at. load_halo() has
  // been called before.
  template <class Land>
  device_inline void end_step(const Land& land) {
    step.advance(window);
    filter_at += Layout::TAP;
    if (++tap < TAP_GROUP) return;
    tap = 0;
    const bool starts_chunk = step.starts_chunk(window);
    if (WAIT && starts_chunk) halo.finish();
    if (filter_at == 2 * GROUP) filter_at = 0;
    land();
    if (starts_chunk) halo_at = Layout::HALO - halo_at;
    --groups_left;
    start_ahead(starts_chunk);
  }

 private:
  device_inline void start_group() {
    filter.start(next, filters_at + load_at);
    load_at = GROUP - load_at;
    next.advance_rows(TAP_GROUP / Layout::WIDTH, window);
  }
  device_inline void start_ahead(bool starts_chunk) {
    if (groups_left > 1) start_group();
    if (starts_chunk && step.chunk < last_chunk) halo.start(step.chunk + 1, Layout::HALO - halo_at);
  }
};
