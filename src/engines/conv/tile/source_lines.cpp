#include "engines/conv/tile/source_lines.hpp"

#include <limits>

#include "core/integer.hpp"

namespace kiln {
namespace {

// Padding of pitches, in words.
struct Pads {
  std::int64_t line = 0, row = 0, plane = 0, copy = 0;
};

// The largest padding that pitches may get: planes and copies by 31 banks.
Pads most_pads(const SourceLines& lines) {
  const std::int64_t banks = lines.word_bytes() / 4;  // bytes of a word
  return {3 / banks, 8 / banks, 31 / banks, 31 / banks};
}

// Sets the pitches: multiples of a chunk, so that its vectors stay aligned.
void set_pitches(SourceLines& lines, const Pads& pads) {
  const auto padded = [&](std::int64_t words, std::int64_t pad) {
    return round_up(words + pad, lines.chunk);
  };
  lines.line = padded(lines.words, pads.line);
  lines.row = padded(lines.phases * lines.line, pads.row);
  lines.plane = padded(lines.rows * lines.row, pads.plane);
  lines.copy = lines.copies == 1 ? 0 : padded(lines.planes * lines.plane, pads.copy);
}

// How many elements of x can be copied at once: contiguous, aligned wherever a line begins, and all
// inside or all outside of x.
std::int64_t elements_at_once(const SourceLines& lines, const BandOfLines& band,
                              const Gather& gather, std::int64_t alignment) {
  constexpr std::int64_t widest = 16;
  const Dims& s = gather.source_strides;
  for (std::int64_t bytes = widest; bytes > lines.element; bytes /= 2) {
    const std::int64_t count = bytes / lines.element;
    const auto whole = [&](std::int64_t n) { return n % count == 0; };
    const bool planes_whole = lines.pixel_elements > 1 || gather.channels == 1 || whole(s[1]);
    const bool groups_whole = gather.groups == 1 || whole(gather.channels * s[1]);
    if (bytes >= 4 && bytes <= alignment && lines.phases == 1 && whole(s[0]) && planes_whole &&
        groups_whole && whole(s[3]) && whole(band.step) &&
        whole(gather.source[2] * lines.pixel_elements))
      return count;
  }
  return 1;
}

// The element of a row of x (negative: in the padding before it) that the leftmost tap of pixel 0
// reads.
std::int64_t leftmost(const SourceLines& lines, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t step = gather.step[2];
  return (phase.origin[2] + (step < 0 ? (phase.taps[2] - 1) * step : 0)) * lines.pixel_elements;
}

}  // namespace

std::int64_t SourceLines::place(std::int64_t at) const {
  at += front;
  return (copies == 1 ? 0 : at % 2 * copy) + at / word_elements();
}

std::int64_t SourceLines::bytes() const {
  return round_up(((copies == 1 ? 0 : copy) + planes * plane) * word_bytes(), 16);
}

void lay_lines(SourceLines& lines, const BandOfLines& band, const Gather& gather,
               std::int64_t alignment) {
  const std::int64_t count = elements_at_once(lines, band, gather, alignment);
  lines.access = count * lines.element;
  // Single elements of 16 bits are loaded two words at a time: five elements make four words of the
  // two copies.
  lines.chunk = count > 1 ? lines.access / lines.word_bytes() : lines.word_elements();
  lines.front = 0;
  if (count > 1) {
    const std::int64_t left = leftmost(lines, gather) % count;
    lines.front = left < 0 ? left + count : left;
  }
  lines.copies = 1, lines.shift = 0;
  if (lines.word_elements() == 2) {
    const bool turned = lines.front % 2 != 0;
    const bool even = turned ? band.odd : band.even, odd = turned ? band.even : band.odd;
    lines.copies = even && odd ? 2 : 1;
    lines.shift = odd && !even ? 1 : 0;
  }
  lines.words = round_up(ceil_div(lines.front + band.elements, lines.word_elements()), lines.chunk);
}

bool reserve_pitches(SourceLines& lines, const DeviceDescription& device) {
  // Each size may be large; their product must fit.
  std::int64_t words = 1;
  for (const std::int64_t factor : {lines.planes, lines.rows, lines.phases, lines.words}) {
    if (factor > device.shared_memory_per_block / words) return false;
    words *= factor;
  }
  set_pitches(lines, most_pads(lines));
  return true;
}

void set_narrowest_pitches(SourceLines& lines) { set_pitches(lines, {}); }

void spread_over_banks(
    SourceLines& lines, std::int64_t reads,
    const std::function<std::int64_t(const SourceLines&, std::int64_t)>& accesses) {
  const Pads most = most_pads(lines);
  Pads best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const auto attempt = [&](const Pads& pads) {
    if (least <= reads) return;  // none is better
    set_pitches(lines, pads);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < reads && count < least; ++i) count += accesses(lines, i);
    if (count < least) least = count, best = pads;
  };
  // The padding of the second copy matters most, then those of rows and lines.
  const std::int64_t step = lines.chunk;
  for (std::int64_t copy = 0; copy <= (lines.copies == 1 ? 0 : most.copy); copy += step)
    for (std::int64_t row = 0; row <= most.row; row += step) attempt({0, row, 0, copy});
  if (lines.phases > 1)
    for (Pads pads = best; pads.line <= most.line; pads.line += step) attempt(pads);
  if (lines.planes > 1)
    for (Pads pads = best; pads.plane <= most.plane; pads.plane += step) attempt(pads);
  set_pitches(lines, best);
}

std::int64_t lines_batch(const SourceLines& lines, std::int64_t threads, std::int64_t steps) {
  const std::int64_t positions = lines.phases * (lines.words / lines.chunk);
  const std::int64_t segments = ceil_div(positions, threads);
  const std::int64_t rows_a_turn = threads / ceil_div(positions, segments);
  return ceil_div(segments * ceil_div(lines.planes * lines.rows, rows_a_turn), steps);
}

std::int64_t waiting_registers(const SourceLines& lines, std::int64_t batch) {
  if (lines.word_elements() == 1) return 0;
  const std::int64_t parts = lines.access == lines.element ? 2 * lines.chunk : lines.chunk;
  constexpr std::int64_t place = 1;
  return batch * (parts + (lines.copies == 2 || lines.shift == 1 ? 1 : 0) + place);
}

void add_lines_constants(std::vector<Constant>& constants, const SourceLines& lines) {
  const auto add = [&](const char* name, std::int64_t value, const char* comment = "") {
    constants.push_back({name, value, comment});
  };
  add("X_PLANES", lines.planes, "planes of the source in shared memory");
  add("X_ACCESS", lines.access, "bytes in one copy of the source");
  add("X_CHUNK", lines.chunk, "words that a thread loads at a time");
  add("X_FRONT", lines.front, "elements of a line before the band's first");
  add("COPIES", lines.copies, "copies of a line, the second one an element on");
  add("X_SHIFT", lines.shift, "elements by which a single copy is shifted");
  add("LINE_WORDS", lines.words);
  add("X_LINE", lines.line, "words from one line to the next");
  add("X_ROW", lines.row);
  add("X_PLANE", lines.plane);
  add("X_COPY", lines.copy);
}

}  // namespace kiln
