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
  std::int64_t pixel_elements = 1;    // elements that a pixel has side by side in a row of x
  std::int64_t phases = 1;  // lines of a row; the elements of one line are so far apart in x
  std::int64_t access = 0;  // bytes of x at a time
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
  bool even = true, odd = false;  // whether words are read at even, at odd elements from there on
};

// Chooses how lines of known element, planes, rows, pixel_elements and phases are loaded, and their
// words; alignment: bytes, of x. The pitches are not set.
void lay_lines(SourceLines& lines, const BandOfLines& band, const Gather& gather,
               std::int64_t alignment);

// The widest pitches that spread_over_banks() may choose; false if no block's shared memory holds
// even the words.
bool reserve_pitches(SourceLines& lines, const DeviceDescription& device);
void set_narrowest_pitches(SourceLines& lines);
// Sets the pitches with which so many reads take the fewest wavefronts in all; accesses: of the
// i-th read.
void spread_over_banks(
    SourceLines& lines, std::int64_t reads,
    const std::function<std::int64_t(const SourceLines&, std::int64_t)>& accesses);

// Chunks that a thread has on their way at a time, if all come in so many steps, and the registers
// they wait in.
std::int64_t lines_batch(const SourceLines& lines, std::int64_t threads, std::int64_t steps);
std::int64_t waiting_registers(const SourceLines& lines, std::int64_t batch);

void add_lines_constants(std::vector<Constant>& constants, const SourceLines& lines);

}  // namespace kiln
