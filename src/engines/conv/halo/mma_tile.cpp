#include "engines/conv/halo/mma_tile.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/line_store.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// What was found of tiles that begin at each row's last column. It is the same for all widths of a
// strip at which tiles end in the same row; a wide image has many.
struct AtLastColumns {
  std::int64_t end = 0;  // row in which a tile ends that begins in row 0
  std::int64_t most = 0, live_rows = 0, looked_at = 0;
};

// Sets what the tiles' pixels read of the source: the most source rows of any tile, and the mean
// numbers of live rows and columns of taps. A strip's tiles follow each other through all images,
// so they begin at every multiple of n.
void meet_source(HaloMmaTile& tile, const Gather& gather, AtLastColumns& known) {
  const std::int64_t rows = gather.phases.front().pixels[1], pixels = rows * tile.strip;
  const std::int64_t n = tile.shape.n;
  const std::int64_t extent = (gather.phases.front().taps[1] - 1) * std::abs(gather.step[1]) + 1;
  // With more starting rows than this, all are assumed to occur.
  constexpr std::int64_t most_beginnings = 4096;
  const std::int64_t every = std::gcd(n, pixels), beginnings = pixels / every;
  std::int64_t most = 0, looked_at = 0, live_rows = 0, live_columns = 0;
  const std::int64_t all_live = gather.live_taps(1, 0, rows - 1);
  // `times` tiles that begin in row `first` of an image and end in row `last`, counted on through
  // the images behind it.
  const auto look = [&](std::int64_t first, std::int64_t last, std::int64_t times) {
    const std::int64_t end =
        last / rows * tile.image_rows + last % rows * gather.stride[1] + extent;
    most = std::max(most, end - first * gather.stride[1]);
    live_rows += times * (last < rows ? gather.live_taps(1, first, last) : all_live);
    looked_at += times;
  };
  const std::int64_t strip = tile.strip, whole = (n - 1) / strip;
  if (beginnings <= std::min(2 * rows, most_beginnings)) {
    for (std::int64_t i = 0; i < beginnings; ++i)
      look(i * every / strip, (i * every + n - 1) / strip, 1);
  } else if (beginnings <= most_beginnings) {
    // Tiles that begin in one row end in the same row if they begin before column `turn`, else in
    // the next one.
    const std::int64_t turn = strip - (n - 1) % strip;
    std::int64_t before = 0;  // beginnings
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t early = ceil_div(row * strip + turn, every),
                         late = ceil_div((row + 1) * strip, every);
      if (early > before) look(row, row + whole, early - before);
      if (late > early) look(row, row + whole + 1, late - early);
      before = late;
    }
  } else {  // at each row's last column, so that the tile covers the most rows
    const std::int64_t step = ceil_div(rows, most_beginnings), end = (strip + n - 2) / strip;
    if (known.end != end) {
      for (std::int64_t row = 0; row < rows; row += step) look(row, row + end, 1);
      known = {end, most + step * gather.stride[1], live_rows, looked_at};
    }
    most = known.most, live_rows = known.live_rows, looked_at = known.looked_at;
  }
  const std::int64_t taps = gather.phases.front().taps[2];
  const auto live_in = [&](std::int64_t i) {
    const std::int64_t end = std::min((i + 1) * strip, gather.phases.front().pixels[2]);
    return gather.live_taps(2, i * strip, end - 1);
  };
  // If every tap is live for two strips, it is live for all strips between them.
  std::int64_t left = 0, right = tile.strips;
  while (left < right) {
    const std::int64_t live = live_in(left++);
    live_columns += live;
    if (live == taps) break;
  }
  while (left < right) {
    const std::int64_t live = live_in(--right);
    live_columns += live;
    if (live == taps) break;
  }
  live_columns += (right - left) * taps;
  tile.halo_rows = most;
  tile.live_rows = static_cast<double>(live_rows) / static_cast<double>(looked_at);
  tile.live_columns = static_cast<double>(live_columns) / static_cast<double>(tile.strips);
}

}  // namespace

std::int64_t HaloMmaTile::pitch() const { return fragments_pitch(shape.chunk_steps, element); }

std::int64_t HaloMmaTile::halo_bytes() const {
  // If words are copied one by one (NCHW), there is a plane for each word of channels, and each
  // plane begins 8 banks after the one before.
  const std::int64_t plane = (halo_pixels() + 23) / 32 * 32 + 8;
  return shape.columns_left && scalar_copies() ? 32 * shape.chunk_steps * plane
                                               : halo_pixels() * pitch();
}

std::int64_t HaloMmaTile::filter_bytes() const {
  if (shape.columns_left) {
    const std::int64_t tap = 32 * shape.chunk_steps * (shape.m + 1);
    return scalar_copies() ? tap_group * (tap + 16) : tap;
  }
  if (tap_group > 1) return tap_group * (shape.m * pitch() + 16);
  return filter_rows_inner ? chunk_channels() * (shape.m * element + transposed_pad(element))
                           : shape.m * pitch();
}

std::uint32_t HaloMmaTile::shared_memory(bool rows_inner) const {
  // With wgmma, lo parts have their own memory: for the current stage, or for three stages if a
  // stage has one tap.
  const int lo_parts = !shape.columns_left || !shape.split ? 0 : scalar_copies() ? 1 : 3;
  const int filters = shape.stages + lo_parts;
  const std::int64_t operands =
      halo_stages * halo_bytes() + filters * filter_bytes() + 4 * halo_pixels();
  const std::int64_t sums = staged ? staged_bytes(shape.m, shape.n, rows_inner, element) : 0;
  return static_cast<std::uint32_t>(std::max(operands, sums));
}

void HaloMmaTile::set_halo_stages(int stages, int ahead) {
  halo_stages = stages;
  least_taps = stages > 1 ? (ahead + stages - 2) / (stages - 1) : 1;
}

double HaloMmaTile::walked_taps(const Gather& gather) const {
  const Spatial& taps = gather.phases.front().taps;
  if (tap_group == 1) return std::max(live_rows * live_columns, 1.0);
  const bool row = tap_group == taps[2];
  return static_cast<double>(taps[2]) * (row ? live_rows : static_cast<double>(taps[1]));
}

std::optional<HaloMmaTile> lay_halo_tile(const HaloMmaShape& shape, const Gather& gather,
                                         int tap_group, const DeviceDescription& device) {
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t width = phase.pixels[2], taps = phase.tap_count();
  HaloMmaTile tile;
  tile.shape = shape;
  tile.element = static_cast<int>(size_of(gather.type));
  tile.tap_group = tap_group;
  tile.filter_rows_inner = !tile.scalar_copies() && gather.w_channel != 1 && gather.channels > 1;
  tile.image_rows =
      (phase.pixels[1] - 1) * gather.stride[1] + (phase.taps[1] - 1) * std::abs(gather.step[1]) + 1;
  // ahead: taps that are loaded ahead; ring: halos that the chunks of all these taps need.
  const int ahead = (shape.stages - 1) * tap_group;
  const int ring = 1 + static_cast<int>(ceil_div(ahead, taps));

  // Clocks of a chunk: m16n8 products at the rate of mma.sync, a thread's copies of the halo, and
  // the wait for them where there is only one halo.
  constexpr double copy_clocks = 8, wait_clocks = 3000;
  constexpr std::int64_t narrowest = 8;
  std::optional<HaloMmaTile> best;
  double best_clocks = 0;
  const auto fits = [&] {
    return fits_shared_memory(tile.shared_memory(rows_innermost(gather)), shape.min_blocks, device);
  };
  constexpr std::int64_t most_pixels = 1 << 14;
  const std::int64_t least_rows = (phase.taps[1] - 1) * std::abs(gather.step[1]) + 1;
  AtLastColumns known;
  // The next narrower strip, which takes more of them, has at least so many.
  const auto next = [&] { return tile.strip > 1 ? ceil_div(width, tile.strip - 1) : width + 1; };
  for (std::int64_t strips = 1; strips == 1 || ceil_div(width, strips) >= narrowest;
       strips = next()) {
    tile.strip = ceil_div(width, strips);
    tile.strips = ceil_div(width, tile.strip);
    tile.halo_columns =
        (tile.strip - 1) * gather.stride[2] + (phase.taps[2] - 1) * std::abs(gather.step[2]) + 1;
    if (least_rows * tile.halo_columns > most_pixels) continue;
    meet_source(tile, gather, known);
    if (tile.halo_pixels() > most_pixels) continue;
    tile.staged = shape.columns_left;
    tile.set_halo_stages(ring, ahead);
    if (!fits() && !tile.scalar_copies()) tile.set_halo_stages(1, ahead);
    if (!fits()) continue;
    tile.staged = true;
    if (!fits()) tile.staged = false;
    const std::int64_t thread_products = shape.thread_m * shape.thread_n / 4;
    const double walked = tile.walked_taps(gather);
    const double products =
        walked * static_cast<double>(shape.chunk_steps * thread_products) * product_clocks * 2;
    const int pixel_copies =
        (tile.scalar_copies() ? 32 / std::max(tile.element, 4) : 2) * shape.chunk_steps;
    const double copies =
        static_cast<double>(tile.halo_pixels() * pixel_copies) / shape.threads() * copy_clocks * 2;
    const double wait = tile.halo_stages > 1 ? 0 : wait_clocks;
    const double clocks = (products + copies + wait) *
                          static_cast<double>(tile.strip * tile.strips) /
                          static_cast<double>(width);
    if (!best || clocks < best_clocks) best = tile, best_clocks = clocks;
  }
  return best;
}

std::string describe(const HaloMmaTile& tile) {
  const HaloMmaShape& shape = tile.shape;
  return cat(shape.m, "x", shape.n, ", ", shape.thread_m, "x", shape.thread_n, " a thread, ",
             shape.threads(), " threads, ", shape.stages, " stages, strips of ", tile.strip,
             ", halo ", tile.halo_rows, "x", tile.halo_columns, " of ", tile.chunk_channels(),
             " channels", tile.halo_stages == 1 ? ", one at a time" : "",
             tile.tap_group > 1 ? cat(", taps by ", tile.tap_group) : "");
}

}  // namespace kiln
