// The way of a planar tile's operands through shared memory: two halos, and two groups of TAP_GROUP
// taps of the filter. While the steps of a group multiply, they load the next group and some of the
// next chunk's halo; all threads wait for each other only where that lands.
#pragma once

#include "conv/halo/planar_loader.cuh"

template <class Layout>
struct PlanarStages {
  static constexpr int GROUP = TAP_GROUP * Layout::TAP;  // bytes
  static constexpr bool WAIT = PlanarHaloLoader<Layout>::Words::WAIT;

  const TapWindow& window;
  PlanarHaloLoader<Layout>& halo;
  PlanarFilterLoader<Layout>& filter;
  int filters_at;  // in shared memory, as what follows
  int last_chunk;
  Step step;                       // at hand
  Step next;                       // of the group to be loaded
  int tap = 0;                     // of the group
  int groups_left;                 // from the one at hand on
  int filter_at = 0, halo_at = 0;  // of the step
  int load_at = 0;                 // of the group to be loaded

  // Of the groups begin <= k < end.
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

  // Brings the first group and its halo, and starts what comes after (ONE_STEP: loads a step's
  // share of it, too); they have landed for all once land() is back.
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

  // A share of what the group at hand is to load; PARTS of them are a step's of the filter.
  template <int PARTS>
  device_inline void load_filter(int part) {
    filter.loader.template load<PARTS>(part);
  }
  device_inline void load() {
    load_filter<1>(0);
    load_halo();
    filter.loader.advance();
  }
  // A step's share or, in its chunk's last one, all that is left of the next chunk's. What comes by
  // registers would be waited for in such a loop: so that is left to end_step(), where it is
  // written once more.
  device_inline void load_halo() {
    const bool rest = step.r + 1 == window.r.end && step.s + 1 == window.s.end;
#pragma unroll 1
    do halo.step();
    while (!WAIT && rest && halo.pending());
  }

  // Where the group at hand begins.
  device_inline int group_at() const { return filter_at < GROUP ? 0 : GROUP; }

  // land(): the next group is to land for all, at filter_at. load_halo() has been called before.
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
