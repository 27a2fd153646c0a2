#include "engines/conv/implicit_gemm/layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/integer.hpp"

namespace kiln::implicit_gemm {
namespace {

// The share of products with padding above which tiles hold the same pixel of many images; chosen.
constexpr double least_waste = 0.1;

// The taps along a row that tiles of `together` neighbouring pixels visit in all.
std::int64_t walked_in_row(const Gather& gather, std::int64_t together) {
  std::int64_t taps = 0;
  for (std::int64_t q = 0; q < gather.phases.front().pixels[2]; q += together)
    taps += gather.live_taps(2, q, q + together - 1) * together;
  return taps;
}

// Whether runs of `vector` pixels are contiguous in the output and aligned to their size (if the
// output is aligned).
bool output_runs_along_pixels(const Gather& gather, int vector) {
  const Dims& s = gather.out_strides;
  const Spatial& out = gather.phases.front().pixels;
  const auto divides = [&](std::int64_t stride) { return stride % vector == 0; };
  if (columns_together(gather) > 1)
    return columns_together(gather) % vector == 0 && s[4] == 1 && divides(s[0]) && divides(s[1]) &&
           divides(s[2]) && divides(s[3]);
  if (!fixed_geometry(gather) || !divides(s[0]) || !divides(s[1])) return false;
  if (out[2] > 1 ? s[4] != 1 : true) return false;
  const bool rows_flat = out[1] == 1 || s[3] == out[2];
  const bool planes_flat = out[0] == 1 || s[2] == out[1] * out[2];
  if (rows_flat && planes_flat) return gather.phases.front().out_pixels() % vector == 0;
  return out[2] % vector == 0 && divides(s[2]) && divides(s[3]);
}

// The same for runs of rows. Requires output_rows_inner().
bool output_runs_along_rows(const Gather& gather, int vector) {
  const auto divides = [&](std::int64_t offset) { return offset % vector == 0; };
  const Dims& s = gather.out_strides;
  return divides(s[0]) && divides(s[2]) && divides(s[3]) && divides(s[4]) &&
         std::all_of(gather.phases.begin(), gather.phases.end(),
                     [&](const Gather::Phase& phase) { return divides(phase.out_first); });
}

// How many images a tile touches; offsets are counted from its first one.
std::int64_t images_of_tile(const Gather& gather, const GemmTile& tile) {
  std::int64_t least = limit32;
  for (const Gather::Phase& phase : gather.phases) least = std::min(least, phase.out_pixels());
  return tile.n / least + 2;
}

}  // namespace

bool images_inner(const Gather& gather) { return gather.padding_waste() > least_waste; }

int columns_together(const Gather& gather) {
  constexpr std::int64_t sector = 32;
  constexpr double most_waste = 0.05;       // taps that are visited in vain; chosen
  constexpr std::int64_t widest = 1 << 12;  // with more pixels, next to nothing is padding
  if (!images_inner(gather) || gather.phases.size() > 1 || gather.source_strides[4] != 1 ||
      gather.stride[2] != 1 || gather.phases.front().pixels[2] > widest)
    return 1;
  constexpr std::int64_t fewest = 4;
  const auto most = sector / static_cast<std::int64_t>(size_of(gather.type));
  std::int64_t together = std::gcd(most, gather.phases.front().pixels[2]);
  if (together < fewest) return 1;
  const auto least = static_cast<double>(walked_in_row(gather, 1));
  for (; together >= fewest; together /= 2)
    if (static_cast<double>(walked_in_row(gather, together)) <= (1 + most_waste) * least)
      return static_cast<int>(together);
  return 1;
}

bool fixed_geometry(const Gather& gather) {
  return gather.phases.size() == 1 && gather.most_taps() > 0 && !images_inner(gather);
}

std::int64_t filter_step(const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t sizes[] = {gather.channels, taps[0], taps[1], taps[2]};
  const std::int64_t strides[] = {gather.w_channel, gather.w_tap[0], gather.w_tap[1],
                                  gather.w_tap[2]};
  // Dimensions of the reduction, innermost first.
  const std::array<int, 4> order =
      gather.channels_inner() ? std::array{0, 3, 2, 1} : std::array{3, 2, 1, 0};
  std::int64_t step = 0, extent = 1;
  for (int i : order) {
    if (sizes[i] == 1) continue;
    if (extent == 1) step = strides[i];
    if (strides[i] != step * extent) return 0;
    extent *= sizes[i];
  }
  return extent == 1 ? 1 : step;
}

bool output_rows_inner(const Gather& gather) {
  return gather.rows * gather.groups > 1 && gather.out_strides[1] == 1;
}

bool output_runs(const Gather& gather, int vector) {
  return output_rows_inner(gather) ? output_runs_along_rows(gather, vector)
                                   : output_runs_along_pixels(gather, vector);
}

Widths wide_offsets(const Gather& gather, const GemmTile& tile, const Dims& z_strides) {
  const std::int64_t images = images_of_tile(gather, tile);
  std::int64_t margin = 0;
  const Spatial taps = gather.largest_taps();
  for (int i = 0; i < 3; ++i) {
    std::int64_t origin = 0;
    for (const Gather::Phase& phase : gather.phases)
      origin = std::max(origin, std::abs(phase.origin[i]));
    margin += (origin + taps[i] * std::abs(gather.step[i]) + gather.stride[i]) *
              gather.source_strides[2 + i];
  }
  // A tile may reach past the last row and the last element of the reduction.
  const std::int64_t beyond = tile.k * std::max(gather.source_strides[1], gather.w_channel);
  const std::int64_t source =
      images * gather.source_strides[0] + beyond + 2 * margin +
      image_span(gather.source_strides, gather.channels * gather.groups, gather.source);
  const std::int64_t w =
      tile.m * gather.w_row + beyond +
      image_span({0, gather.w_row, gather.w_tap[0], gather.w_tap[1], gather.w_tap[2]}, gather.rows,
                 taps) +
      (gather.channels - 1) * gather.w_channel;
  const auto out = [&](const Dims& strides) {
    return images * strides[0] + tile.m * strides[1] +
           image_span(strides, gather.rows * gather.groups, gather.largest_pixels());
  };
  return {std::max(source, w) > limit32,
          std::max(out(gather.out_strides), out(z_strides)) > limit32};
}

bool pixel_lanes_on_k(const Gather& gather) {
  return gather.channels_inner() || (images_inner(gather) && columns_together(gather) == 1);
}
bool row_lanes_on_k(const Gather& gather) { return gather.w_row != 1 || gather.rows == 1; }

}  // namespace kiln::implicit_gemm
