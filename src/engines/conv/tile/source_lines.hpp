// How a band of x is laid out in shared memory as lines of words, and how it is loaded
// (kernel_sources/conv/load/line_loader.cuh).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

struct SourceLines {
  std::int64_t element = 0;           // bytes
  std::int64_t planes = 0, rows = 0;  // rows in a plane
  std::int64_t pixel_elements = 1;    // contiguous elements of a pixel in a row of x
  std::int64_t phases = 1;  // lines of a row; neighbours in a line are `phases` apart in x
  std::int64_t access = 0;  // bytes of x that are copied at a time
  std::int64_t chunk = 1, words = 0;   // words that a thread loads at a time; words of a line
  std::int64_t front = 0;              // elements of a line before the band's first
  std::int64_t copies = 1, shift = 0;  // copies of each line (16 bits: 1 or 2); elements by which a
                                       // single copy is shifted
  // Words from one copy, plane, row and line to the next. The second copy follows all planes of the
  // first.
  std::int64_t line = 0, row = 0, plane = 0, copy = 0;

  std::int64_t word_bytes() const { return std::max<std::int64_t>(element, 4); }
  std::int64_t word_elements() const { return word_bytes() / element; }
  // The word of a line that holds its element `at`.
  std::int64_t place(std::int64_t at) const;
  std::int64_t chunks() const { return planes * rows * phases * (words / chunk); }
  std::int64_t bytes() const;  // in shared memory
};

// What a band of pixels reads of each row of x.
struct BandOfLines {
  std::int64_t elements = 0;      // elements of a line that the band reads
  std::int64_t step = 0;          // elements of x from one band to the next in a row; 0: one band
  bool even = true, odd = false;  // whether words at even and at odd elements of the band are read
};

// Chooses how lines are loaded, and their words: sets access, chunk, words, front, copies and
// shift. The pitches are not set. alignment: of x, in bytes.
void lay_lines(SourceLines& lines, const BandOfLines& band, const Gather& gather,
               std::int64_t alignment);

// Sets the widest pitches that spread_over_banks() may choose. Returns false if not even the words
// fit into a block's shared memory.
bool reserve_pitches(SourceLines& lines, const DeviceDescription& device);
void set_narrowest_pitches(SourceLines& lines);
// Sets the pitches with which `reads` reads of a warp take the fewest wavefronts in all.
// accesses(lines, i): the wavefronts of read i with the pitches of `lines`.
void spread_over_banks(
    SourceLines& lines, std::int64_t reads,
    const std::function<std::int64_t(const SourceLines&, std::int64_t)>& accesses);

// The chunks that a thread has in flight if all are loaded in `steps` steps, and the registers in
// which `batch` chunks wait.
std::int64_t lines_batch(const SourceLines& lines, std::int64_t threads, std::int64_t steps);
std::int64_t waiting_registers(const SourceLines& lines, std::int64_t batch);

void add_lines_constants(std::vector<Constant>& constants, const SourceLines& lines);

}  // namespace kiln
