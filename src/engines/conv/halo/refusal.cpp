#include "engines/conv/halo/refusal.hpp"

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_taps = 16;  // taps in a stage of the filter of channels-first images

}  // namespace

Refusal halo_refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  const std::int64_t reduction = gather.channels * gather.most_taps();
  if (auto refused = mma_refusal(seen.problem, reduction, seen.device)) return refused;
  if (auto refused = plane_refusal(gather)) return refused;
  constexpr std::int64_t least_rows = 16;
  if (auto refused = rows_refusal(gather.rows, least_rows)) return refused;
  constexpr std::int64_t most = limit32 / 2;
  if (gather.most_pixels() > most || reduction > most)
    return Refusal{cat(gather.most_pixels(), " output pixels an image of ", reduction,
                       " products each; expected at most ", most, ", which 32 bits can count")};
  return {};
}

Refusal channels_last_refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = copies_refusal(seen.problem, copied_source(seen.problem, gather)))
    return refused;
  constexpr std::int64_t bytes = copied_bytes;
  const auto whole = [&](std::int64_t stride) {
    return stride * static_cast<std::int64_t>(size_of(gather.type)) % bytes == 0;
  };
  const bool taps_whole = whole(gather.w_tap[1]) && whole(gather.w_tap[2]) &&
                          whole(gather.w_group) && whole(gather.phases.front().w_first);
  const bool channels_inner = gather.w_channel == 1 && whole(gather.w_row) && taps_whole;
  const bool rows_inner =
      gather.w_row == 1 && whole(gather.w_channel) && taps_whole && whole(gather.rows);
  if (!channels_inner && !rows_inner)
    return Refusal{
        cat("in w neither channels nor filters are contiguous, in multiples of ", bytes, " bytes")};
  return {};
}

std::vector<int> tap_groups(const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  std::vector<int> groups;
  const bool row_follows = gather.w_tap[2] == 1 || taps[2] == 1;
  const bool rows_follow = gather.w_tap[1] == taps[2] || taps[1] == 1;
  for (std::int64_t rows = taps[1]; rows >= 1; --rows)
    if (taps[1] % rows == 0 && rows * taps[2] > 1 && rows * taps[2] <= most_taps && row_follows &&
        (rows_follow || rows == 1))
      groups.push_back(static_cast<int>(rows * taps[2]));
  return groups;
}

Refusal planar_refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  if (phase.tap_count() == 1) return Refusal{"the filter has one tap, so no input would be reused"};
  if (gather.source_strides[4] != 1)
    return Refusal{"the pixels of a row are not contiguous (stride 1) in the input"};
  const std::int64_t chunk = 32 / static_cast<std::int64_t>(size_of(gather.type));
  if (const std::int64_t idle = (chunk - gather.channels % chunk) % chunk;
      idle * 3 > gather.channels)
    return Refusal{cat(gather.channels, " channels a group; multiplied ", chunk,
                       " at a time, too many would be zeros")};
  if (tap_groups(gather).empty()) return Refusal{"too few taps of w are contiguous"};
  return {};
}

bool narrow_offsets(const Seen& seen, std::int64_t tile_rows, std::int64_t chunk_channels,
                    std::int64_t images) {
  const Gather& gather = seen.gather;
  const Spatial& pixels = gather.phases.front().pixels;
  const auto span = [&](const Dims& strides, std::int64_t channels, const Spatial& sizes) {
    return images * strides[0] + image_span(strides, channels, sizes);
  };
  const std::int64_t rows = (ceil_div(gather.rows, tile_rows) + 1) * tile_rows;
  const std::int64_t channels = gather.channels + chunk_channels;
  const std::int64_t w = rows * gather.w_row + channels * gather.w_channel +
                         gather.w_tap[1] * gather.largest_taps()[1] +
                         gather.w_tap[2] * gather.largest_taps()[2];
  return span(gather.source_strides, channels, gather.source) <= limit32 && w <= limit32 &&
         span(gather.out_strides, rows, pixels) <= limit32 &&
         span(seen.problem.z_strides, rows, pixels) <= limit32;
}

}  // namespace kiln
