// The rows and taps of the source that a halo tile's pixels read, compared with a walk over all
// tiles.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <numeric>

#include "engines/conv/halo/mma_tile.hpp"
#include "problem/line/problem_line.hpp"

using namespace kiln;

namespace {

struct Met {
  std::int64_t most_rows = 0;
  double live_rows = 0, live_columns = 0;
};

// Walks over the tiles of n pixels that follow each other in the strips of all images.
Met meet_all(const HaloMmaTile& tile, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t n = tile.shape.n, pixels = phase.pixels[1] * tile.strip;
  Met met;
  std::int64_t tiles = 0, live = 0;
  // The loop ends when a tile begins at the beginning of an image again.
  for (std::int64_t first = 0; tiles == 0 || first % pixels != 0; first += n, ++tiles) {
    const auto row = [&](std::int64_t pixel) {  // source row, with images one below the other
      return pixel / pixels * tile.image_rows + pixel % pixels / tile.strip * gather.stride[1];
    };
    const std::int64_t last = first + n - 1;
    met.most_rows = std::max(
        met.most_rows, row(last) - row(first) + (phase.taps[1] - 1) * std::abs(gather.step[1]) + 1);
    const bool one_image = first / pixels == last / pixels;
    live += one_image ? gather.live_taps(1, first % pixels / tile.strip, last % pixels / tile.strip)
                      : gather.live_taps(1, 0, phase.pixels[1] - 1);
  }
  met.live_rows = static_cast<double>(live) / static_cast<double>(tiles);
  for (std::int64_t strip = 0; strip < tile.strips; ++strip)
    met.live_columns += static_cast<double>(gather.live_taps(
        2, strip * tile.strip, std::min((strip + 1) * tile.strip, phase.pixels[2]) - 1));
  met.live_columns /= static_cast<double>(tile.strips);
  return met;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(halo_tiles)

BOOST_AUTO_TEST_CASE(rows_and_live_taps_are_those_of_all_tiles) {
  const DeviceDescription device = known_architecture("h200");
  int compared = 0, of_many_beginnings = 0;
  for (const char* line :
       {"mb4ic64ih56oc64kh3ph1", "mb4ic64ih55oc64kh3ph1", "mb4ic64ih7oc64kh3ph1",
        "mb4ic64ih13iw61oc64kh5ph2", "mb4ic64ih61iw13oc64kh5ph4dh1", "mb4ic64ih40oc64kh3ph1sh2",
        "mb4ic32iw4000oc32kw7pw9dw2", "mb4ic32ih2iw45oc32kh3ph2", "mb4ic32ih9oc32kh9ph8"})
    for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
      for (const int n : {64, 192, 256, 384}) {
        const Gather gather = make_gather(
            make_convolution(parse_convolution_line(line), KILN_DATA_HALF, KILN_TENSOR_NHWC, mode));
        const HaloMmaShape shape{.m = 64, .n = n, .thread_m = 8, .thread_n = 8, .chunk_steps = 2};
        const auto tile = lay_halo_tile(shape, gather, 1, device);
        if (!tile) continue;
        const Met expected = meet_all(*tile, gather);
        BOOST_TEST_CONTEXT(line << " in tiles of " << n << " pixels, strips of " << tile->strip) {
          BOOST_TEST(tile->halo_rows == expected.most_rows);
          BOOST_TEST(tile->live_rows == expected.live_rows);
          BOOST_TEST(tile->live_columns == expected.live_columns);
        }
        ++compared;
        const std::int64_t rows = gather.phases.front().pixels[1];
        of_many_beginnings += rows * tile->strip / std::gcd(rows * tile->strip, n) > 2 * rows;
      }
  BOOST_TEST(compared > 40);
  BOOST_TEST(of_many_beginnings > 5);
}

BOOST_AUTO_TEST_SUITE_END()
