#include "engines/conv/tile/quad_rows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/integer.hpp"

namespace kiln {
namespace {

constexpr std::int64_t banks =
    8;  // quads that all banks hold side by side; lanes that read at once

// How many turns more than one the reads of a block's first warps take, a quarter of a warp at a
// time.
std::int64_t conflicts(const QuadRows& rows, std::int64_t pitch) {
  constexpr std::int64_t looked_at = 64;
  const std::int64_t threads = std::min(looked_at, rows.threads);
  std::int64_t sum = 0;
  for (std::int64_t first = 0; first < threads; first += banks) {
    std::array<std::int64_t, banks> lanes{};
    for (std::int64_t i = first; i < std::min(first + banks, threads); ++i)
      ++lanes[static_cast<std::size_t>((i / rows.runs * pitch + i % rows.runs) % banks)];
    sum += *std::max_element(lanes.begin(), lanes.end()) - 1;
  }
  return sum;
}

// Planes that are apart by their share of the banks: neighbouring quads of a row, which are stored
// at once, are in different ones.
std::int64_t plane_of(const QuadRows& rows, std::int64_t pitch) {
  const std::int64_t apart = std::max<std::int64_t>(banks / rows.lane_quads, 1) % banks;
  const std::int64_t least = rows.rows * pitch;
  return least + ((apart - least) % banks + banks) % banks;
}

}  // namespace

QuadLayout lay_quads(const QuadRows& rows, std::int64_t most) {
  const std::int64_t least = ceil_div(rows.quads, rows.lane_quads);
  std::int64_t best = least, fewest = conflicts(rows, least);
  for (std::int64_t pitch = least + 1; pitch < least + banks && fewest > 0; ++pitch) {
    if (rows.lane_quads * plane_of(rows, pitch) > most) break;
    if (const std::int64_t some = conflicts(rows, pitch); some < fewest)
      best = pitch, fewest = some;
  }
  return {best, plane_of(rows, best)};
}

}  // namespace kiln
