// Rows of pixels in shared memory, of which threads read quads (16 bytes) at equal distances.
#pragma once

#include <cstdint>

namespace kiln {

// Thread i of a block reads from quad i % runs * lane_quads on of row i / runs * (a stride).
struct QuadRows {
  std::int64_t runs = 0, threads = 0;
  std::int64_t rows = 0, quads = 0;  // that are stored, and quads of each
  std::int64_t lane_quads = 1;
};

// A layout in quads. Quad q of a row is in plane q % lane_quads, so that what neighbouring threads
// read at once lies side by side. pitch: from the row of a thread to that of the thread below it;
// plane: from plane to plane.
struct QuadLayout {
  std::int64_t pitch = 0, plane = 0;
};

// The layout with the fewest bank conflicts among those that take at most `most` quads, or the
// smallest one.
QuadLayout lay_quads(const QuadRows& rows, std::int64_t most);

}  // namespace kiln
