#include "engines/conv/halo/wgmma_tile.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/line_store.hpp"

namespace kiln {
namespace {

std::int64_t extent(const Gather& gather, int i) {
  return (gather.phases.front().taps[i] - 1) * std::abs(gather.step[i]);
}

// The taps that are live for a tile of these pixels, counted as the kernel counts them.
std::int64_t live_taps_of(const HaloWgmmaTile& tile, const Gather& gather, std::int64_t first_p,
                          std::int64_t end_p, std::int64_t first_q, std::int64_t end_q) {
  const Spatial& pixels = gather.phases.front().pixels;
  // A group of taps is whole rows of the filter.
  if (tile.tap_group > gather.phases.front().taps[2]) return gather.phases.front().tap_count();
  const std::int64_t live =
      gather.live_taps(1, first_p, std::min(end_p, pixels[1]) - 1) *
      (tile.scalar_copies() ? gather.phases.front().taps[2]
                            : gather.live_taps(2, first_q, std::min(end_q, pixels[2]) - 1));
  return live < tile.least_taps ? gather.phases.front().tap_count() : live;
}

// The mean of live_taps_of() over tiles.
double mean_live_taps(const HaloWgmmaTile& tile, const Gather& gather) {
  const std::int64_t n = tile.shape.n, whole_width = gather.phases.front().pixels[2];
  std::int64_t sum = 0, tiles = 0;
  const auto add = [&](std::int64_t first_p, std::int64_t end_p, std::int64_t first_q,
                       std::int64_t end_q) {
    sum += live_taps_of(tile, gather, first_p, end_p, first_q, end_q);
    ++tiles;
  };
  constexpr std::int64_t most_looked_at = 1024;
  if (tile.shape.strips > 0) {
    const std::int64_t rows = tile.shape.strip_rows(), columns = 8 * tile.shape.strips;
    for (std::int64_t p = 0; p < tile.rows && tiles < most_looked_at; p += rows)
      for (std::int64_t q = 0; q < whole_width && tiles < most_looked_at; q += columns)
        add(p, p + rows, q, q + columns);
  } else {  // tiles begin at every multiple of n
    const std::int64_t beginnings = tile.places() / std::gcd(n, tile.places());
    for (std::int64_t i = 0; i < beginnings && i < most_looked_at; ++i) {
      const std::int64_t first = i * n % tile.places(), last = first + n - 1;
      const bool one_image = last < tile.places();
      add(one_image ? first / tile.columns : 0, one_image ? last / tile.columns + 1 : tile.rows, 0,
          whole_width);
    }
  }
  return static_cast<double>(sum) / static_cast<double>(tiles);
}

// The pitch of planes of 16 bytes, such that eight lanes that write planes of the same line or of
// neighbouring ones hit different banks.
std::int64_t apart_for_banks(std::int64_t planes, std::int64_t lines) {
  if (planes >= 8) return lines | 1;
  const std::int64_t neighbours = 8 / planes;
  return ceil_div(lines - neighbours, 8) * 8 + neighbours;
}

}  // namespace

std::int64_t HaloWgmmaTile::plane_pixels() const {
  return apart_for_banks(2 * shape.chunk_steps, halo_pixels);
}

std::int64_t HaloWgmmaTile::filter_plane() const {
  if (scalar_copies()) return shape.m;
  if (!filter_rows_inner) return apart_for_banks(2 * shape.chunk_steps, shape.m);
  return element == 2 ? apart_for_banks(shape.m * element / 16, chunk_channels()) : 0;
}

std::int64_t HaloWgmmaTile::filter_bytes() const {
  if (scalar_copies())
    return tap_group * (shape.parts() * 2 * shape.chunk_steps * filter_plane() * 16 + 16);
  if (filter_plane() == 0) return chunk_channels() * (shape.m * element + transposed_pad(element));
  return (filter_rows_inner ? shape.m * element / 16 : 2 * shape.chunk_steps) * filter_plane() * 16;
}

std::uint32_t HaloWgmmaTile::shared_memory(bool rows_inner) const {
  const std::int64_t halo = shape.parts() * chunk_bytes() * plane_pixels();
  const std::int64_t operands =
      halo_stages * halo + shape.stages * filter_bytes() + 4 * halo_pixels;
  return static_cast<std::uint32_t>(
      std::max(operands, staged_bytes(shape.m, shape.n, rows_inner, element)));
}

std::optional<HaloWgmmaTile> lay_line_tile(const HaloWgmmaShape& shape, const Gather& gather,
                                           int tap_group, const DeviceDescription& device) {
  const Gather::Phase& phase = gather.phases.front();
  HaloWgmmaTile tile;
  tile.shape = shape;
  tile.element = static_cast<int>(size_of(gather.type));
  tile.tap_group = tap_group;
  tile.filter_rows_inner = !tile.scalar_copies() && gather.w_channel != 1 && gather.channels > 1;
  const std::int64_t extent_h = extent(gather, 1), extent_w = extent(gather, 2);
  if (shape.strips > 0) {
    const std::int64_t tile_rows = shape.strip_rows(), tile_columns = 8 * shape.strips;
    tile.rows = ceil_div(phase.pixels[1], tile_rows) * tile_rows;
    tile.columns = ceil_div(phase.pixels[2], tile_columns) * tile_columns;
    tile.halo_columns = tile_columns + extent_w;
    tile.halo_pixels = (tile_rows + extent_h) * tile.halo_columns;
  } else {
    // Places in a row (or rows in an image): at least the pixels, at least the source elements that
    // they read, and so many that reads past the end meet only the padding before the next row (or
    // image).
    const auto length = [&](int i) {
      const std::int64_t first =
          phase.origin[i] + (gather.step[i] < 0 ? (phase.taps[i] - 1) * gather.step[i] : 0);
      const std::int64_t end = first + phase.pixels[i] + extent(gather, i);
      return std::max({phase.pixels[i], end, std::min(gather.source[i], end) - first});
    };
    tile.rows = length(1);
    tile.columns = length(2);
    tile.halo_columns = tile.columns;
    tile.halo_pixels = shape.n + extent_h * tile.columns + extent_w;
  }
  // Each thread copies at least one word of the filter.
  if (tile.scalar_copies() && tap_group * tile.chunk_bytes() / 4 > shape.threads())
    return std::nullopt;
  constexpr std::int64_t most_pixels = 1 << 14;
  if (tile.halo_pixels > most_pixels) return std::nullopt;
  // ahead: taps that are loaded ahead, which may belong to several later chunks with a halo each.
  // Without scalar copies there is one more, because the products of the step before last may still
  // read the halo that would be overwritten.
  const std::int64_t ahead =
      tile.scalar_copies() ? (shape.stages - 1) * std::int64_t{tap_group} : shape.stages;
  tile.halo_stages = 1 + static_cast<int>(ceil_div(ahead, phase.tap_count()));
  tile.least_taps = static_cast<int>(ceil_div(ahead, tile.halo_stages - 1));
  if (!fits_shared_memory(tile.shared_memory(rows_innermost(gather)), shape.min_blocks, device))
    return std::nullopt;
  tile.live_taps = mean_live_taps(tile, gather);
  return tile;
}

std::string describe(const HaloWgmmaTile& tile) {
  return cat(tile.shape.m, "x", tile.shape.n, " by warpgroups, ", tile.shape.threads(),
             " threads, ", tile.shape.stages, " stages, ", tile.shape.split ? "3 products, " : "",
             tile.shape.strips > 1 ? cat(tile.shape.strips, " ") : "",
             tile.shape.strips > 0 ? "strips of " : "lines of ", tile.rows, "x", tile.columns,
             ", halo ", tile.halo_pixels, " of ", tile.chunk_channels(), " channels",
             tile.scalar_copies() ? cat(", taps by ", tile.tap_group) : "");
}

}  // namespace kiln
