// Rows of pixels in shared memory: which layouts let 8 lanes read 16 bytes each from all banks.
#include "engines/conv/tile/quad_rows.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <set>

using kiln::lay_quads;
using kiln::QuadLayout;
using kiln::QuadRows;

namespace {

// Whether the lanes of each quarter of a warp read from different banks.
bool meet_nowhere(const QuadRows& rows, const QuadLayout& layout) {
  for (std::int64_t first = 0; first + 8 <= rows.threads; first += 8) {
    std::set<std::int64_t> banks;
    for (std::int64_t i = first; i < first + 8; ++i)
      banks.insert((i / rows.runs * layout.pitch + i % rows.runs) % 8);
    if (banks.size() != 8) return false;
  }
  return true;
}

constexpr std::int64_t unlimited = 1 << 20;

}  // namespace

BOOST_AUTO_TEST_SUITE(quad_rows)

BOOST_AUTO_TEST_CASE(reads_meet_in_no_bank) {
  for (std::int64_t runs : {1, 2, 4, 7, 8, 14, 28})
    for (std::int64_t lane_quads : {1, 2, 4})
      for (std::int64_t quads : {runs * lane_quads, runs * lane_quads + 3}) {
        const QuadRows rows{.runs = runs,
                            .threads = 4 * 8 * runs,
                            .rows = 30,
                            .quads = quads,
                            .lane_quads = lane_quads};
        const QuadLayout layout = lay_quads(rows, unlimited);
        BOOST_TEST(meet_nowhere(rows, layout), runs << " runs, " << quads << " quads");
        BOOST_TEST(layout.pitch * lane_quads >= quads);
        BOOST_TEST(layout.plane >= rows.rows * layout.pitch);
      }
}

BOOST_AUTO_TEST_CASE(memory_bounds_the_pitch) {
  const QuadRows rows{.runs = 7, .threads = 196, .rows = 30, .quads = 16, .lane_quads = 2};
  BOOST_TEST(lay_quads(rows, unlimited).pitch == 15);
  BOOST_TEST(lay_quads(rows, 2 * 30 * 8).pitch == 8);
  BOOST_TEST(!meet_nowhere(rows, lay_quads(rows, 0)));
}

BOOST_AUTO_TEST_SUITE_END()
