#include "engines/conv/tile/whole_rows.hpp"

#include <cstdlib>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/stride_refusal.hpp"

namespace kiln {
Refusal whole_rows_refusal(const char* tensor, std::int64_t width, std::int64_t channels,
                           const Dims& strides) {
  if (channels > 1 && strides[1] != 1) return stride_refusal(tensor, 1, strides[1], 1);
  if (width > 1 && strides[4] != channels) return stride_refusal(tensor, 4, strides[4], channels);
  return {};
}

Refusal whole_row_sizes_refusal(const Gather& gather, std::int64_t channels) {
  constexpr std::int64_t most = 1 << 24;
  const Gather::Phase& phase = gather.phases.front();
  for (int i = 0; i < 3; ++i)
    for (const std::int64_t size :
         {gather.source[i], phase.pixels[i], phase.pixels[i] * gather.stride[i],
          std::abs(gather.step[i]) * phase.taps[i], std::abs(phase.origin[i])})
      if (size * channels > most)
        return cat("a size is ", size, "; expected at most ", most / channels);
  return {};
}

std::int64_t whole_row_copy(const ConvolutionProblem& problem, std::int64_t width,
                            std::int64_t channels, const Dims& strides, bool planes) {
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  for (std::int64_t bytes = 16; bytes > element; bytes /= 2) {
    const auto whole = [&](std::int64_t elements) { return elements * element % bytes == 0; };
    if (problem.alignment >= bytes && whole(width * channels) && whole(strides[0]) &&
        (!planes || whole(strides[1])) && whole(strides[2]) && whole(strides[3]))
      return bytes;
  }
  return element;
}

std::int64_t whole_row_pitch(std::int64_t elements, std::int64_t element, std::int64_t copy_bytes) {
  return round_up(elements * element + copy_bytes - element, 16);
}

}  // namespace kiln
