#include "engines/conv/direct/narrow_channels.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/channel_vectors.hpp"

namespace kiln {

Refusal narrow_channels_refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (gather.channels != 1)
    return cat(gather.channels, " input channels a group; this engine takes one");
  if (auto refused = channel_vectors_refusal(seen.problem, gather, 1)) return refused;
  if (!volume_refusal(gather) &&
      fitting_vector(seen.problem, gather) == channel_vector(gather.type))
    return "channels in multiples of 16 bytes, in two dimensions; this engine takes others";
  return {};
}

std::int64_t narrow_vector(const Seen& seen) {
  return std::min<std::int64_t>(fitting_vector(seen.problem, seen.gather), 2);
}

std::int64_t narrow_inputs(const Gather& gather, std::int64_t vector) {
  return gather.rows == 1 ? vector : 1;
}

std::int64_t places_read(const Gather& gather, std::size_t dimension, std::int64_t pixels,
                         std::int64_t taps) {
  std::set<std::int64_t> places;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      places.insert(pixel * gather.stride[dimension] + tap * std::abs(gather.step[dimension]));
  return static_cast<std::int64_t>(places.size());
}

std::int64_t narrow_runs(std::int64_t lanes) {
  constexpr std::int64_t most = 256, enough = 128;  // threads of a block
  const auto share = [&](std::int64_t runs) {
    return static_cast<double>(runs * lanes) / static_cast<double>(round_up(runs * lanes, 32));
  };
  std::int64_t best = 1;
  for (std::int64_t runs = 1; runs * lanes <= most; ++runs)
    if (runs * lanes <= enough || share(runs) >= share(best)) best = runs;
  return best;
}

std::int64_t narrow_resident(std::int64_t threads, std::int64_t registers,
                             std::int64_t shared_memory, const DeviceDescription& device) {
  constexpr std::int64_t register_unit = 8, most_threads = 1024, of_system = 1024;
  // ptxas bounds registers as if blocks had multiples of four warps.
  const std::int64_t rounded = round_up(threads, 128);
  return std::min(
      {device.registers_per_multiprocessor / (rounded * round_up(registers, register_unit)),
       device.shared_memory_per_multiprocessor / (shared_memory + of_system),
       most_threads / rounded});
}

}  // namespace kiln
