#include "engines/conv/relaid/copies.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "conv/relaid/channels_last_copies_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t threads = 256, shared_bytes = CHANNELS_LAST_TILES * 16 * 1024;
constexpr std::int64_t tile_bytes = 8192, unit_bytes = 16;
constexpr int least_tile_log = 4, most_tile_log = 9;

std::int64_t count(const Spatial& pixels) { return pixels[0] * pixels[1] * pixels[2]; }

// The logarithm of the pixels of a tile of `tile` elements. A tile has no more pixels than needed,
// but at least so many that its other dimension has no more channels than there are.
int tile_log(std::int64_t pixels, std::int64_t channels, std::int64_t tile) {
  int log = least_tile_log;
  while (log < 6 && (std::int64_t{1} << log) < pixels) ++log;
  while (log < most_tile_log && (tile >> (log + 1)) >= std::max<std::int64_t>(channels, 1) &&
         (std::int64_t{1} << log) < pixels)
    ++log;
  return log;
}

unsigned number(std::int64_t value) { return static_cast<unsigned>(value); }

// Sets the tiles, pixels x channels, of a tensor whose channels' pixels are contiguous.
void set_planes(ChannelsLastCopy& copy, const RelaidTensor& tensor) {
  const bool spread = tensor.pixels == RelaidTensor::Pixels::spread;
  copy.pixels = number(count(spread ? tensor.plane : tensor.copied));
  copy.walk = spread                                          ? WALK_SPREAD
              : tensor.pixels == RelaidTensor::Pixels::picked ? WALK_PICKED
                                                              : WALK_ALIKE;
  const std::int64_t tile = tile_bytes / static_cast<std::int64_t>(size_of(tensor.type));
  copy.tile_log = number(tile_log(copy.pixels, tensor.channels, tile));
  copy.pixel_tiles = number(ceil_div(std::int64_t{copy.pixels}, std::int64_t{1} << copy.tile_log));
  copy.channel_tiles = number(ceil_div(tensor.channels, tile >> copy.tile_log));
  copy.tiles = copy.pixel_tiles * copy.channel_tiles * std::max(copy.out_images, copy.in_images);
  copy.plane_width = number(tensor.plane[2]);
  copy.plane_height = number(tensor.plane[1]);
  copy.picked_width = number(tensor.copied[2]);
  copy.picked_height = number(tensor.copied[1]);
  for (std::size_t i = 0; i < 3; ++i) copy.stride[i] = number(tensor.stride[i]);
}

// Sets the tiles of a tensor whose channels are contiguous. If a pixel of the copy is no multiple
// of 16 bytes either (only filters are added, no channels), all pixels count as one row.
void set_rows(ChannelsLastCopy& copy, const RelaidTensor& tensor) {
  const auto element = static_cast<std::int64_t>(size_of(tensor.type));
  copy.walk = WALK_ROWS;
  copy.pixels = copy.last_pixels;
  if (tensor.copied_channels * element % unit_bytes != 0) {
    copy.channels *= copy.pixels * number(tensor.images);
    copy.last_channels *= copy.pixels * number(tensor.copied_images);
    copy.pixels = copy.images_there = 1;
    copy.in_images = std::min(copy.in_images, 1u);
    copy.out_images = std::min(copy.out_images, 1u);
  }
  const std::int64_t bytes =
      element * copy.last_channels * copy.pixels * std::max(copy.out_images, copy.in_images);
  copy.tiles = number(ceil_div(bytes, tile_bytes));
}

ChannelsLastCopy copy_of(const RelaidMove& move) {
  const RelaidTensor& tensor = *move.tensor;
  ChannelsLastCopy copy{};
  copy.image = tensor.image_stride;
  copy.channel = tensor.channel_stride;
  copy.in_span = tensor.span - move.in_first * tensor.image_stride;
  copy.out_images = number(move.out_images);
  copy.in_images = number(move.in_images);
  copy.images_there = number(std::min(move.in_images, tensor.images - move.in_first));
  copy.in_with_beta = move.beta_only ? 1 : 0;
  copy.channels = number(tensor.channels);
  copy.last_channels = number(tensor.copied_channels);
  copy.last_pixels = number(count(tensor.copied));
  if (tensor.order == RelaidTensor::Order::rows)
    set_rows(copy, tensor);
  else
    set_planes(copy, tensor);
  copy.blocks = number(ceil_div(std::int64_t{copy.tiles}, std::int64_t{CHANNELS_LAST_TILES}));
  return copy;
}

// Adds `first` bytes to the offset of an address hole (see fill_parameters()).
void put_first(LaunchSpec& launch, std::size_t offset, std::int64_t first) {
  std::int64_t before = 0;
  std::memcpy(&before, launch.parameters.data() + offset, sizeof before);
  before += first;
  std::memcpy(launch.parameters.data() + offset, &before, sizeof before);
}

}  // namespace

std::size_t RelaidTensor::image_bytes() const {
  return static_cast<std::size_t>(copied_channels * count(copied)) * size_of(type);
}

Step copies_step(std::span<const RelaidMove> moves, const std::string& engine,
                 const std::string& tile) {
  Step step;
  KernelSpec& spec = step.kernel;
  spec.engine = engine;
  spec.file = "conv/relaid/channels_last_copies.cu";
  spec.entry = "channels_last_copies";
  spec.tile = tile;
  spec.shared_memory = shared_bytes;
  spec.alignment = 16;
  const DataType type = moves.front().tensor->type;
  spec.constants = {{"element_t", kernel_type(type), ""}, {"compute_t", TypeName{"float"}, ""}};
  ChannelsLastParams params{};
  unsigned blocks = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    ChannelsLastCopy& copy = params.copies[i] = copy_of(moves[i]);
    copy.first_block = blocks;
    blocks += copy.blocks;
  }
  LaunchSpec& launch = step.launch;
  launch.set_parameters(params);
  launch.shape.grid = {std::max(blocks, 1u), 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.shape.shared_memory = shared_bytes;
  using Hole = LaunchSpec::Hole;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const RelaidTensor& tensor = *moves[i].tensor;
    const auto add = [&](Hole hole, std::size_t field, std::int64_t first) {
      const std::size_t offset =
          offsetof(ChannelsLastParams, copies) + i * sizeof(ChannelsLastCopy) + field;
      launch.patches.push_back({hole, tensor.operand, static_cast<std::uint16_t>(offset)});
      put_first(launch, offset, first);
    };
    const std::int64_t image = tensor.image_stride * static_cast<std::int64_t>(size_of(type));
    add(Hole::operand, offsetof(ChannelsLastCopy, out), moves[i].out_first * image);
    add(Hole::operand, offsetof(ChannelsLastCopy, in), moves[i].in_first * image);
    add(Hole::workspace, offsetof(ChannelsLastCopy, last), static_cast<std::int64_t>(tensor.first));
  }
  launch.patches.push_back({Hole::beta, 0, offsetof(ChannelsLastParams, beta)});
  return step;
}

double copies_seconds(std::span<const RelaidMove> moves, const DeviceDescription& device) {
  // The caller's tensor is in memory, the copy in the L2 cache. Shares of the rate of memory that
  // are reached; seconds.
  constexpr double memory_share = 0.65, cache_share = 1.3, ramp = 1.5e-6;
  double memory = 0, copies = 0;
  for (const RelaidMove& move : moves) {
    const RelaidTensor& tensor = *move.tensor;
    const double copied = static_cast<double>(tensor.image_bytes());
    const double there =
        copied * static_cast<double>(tensor.channels) / static_cast<double>(tensor.copied_channels);
    const auto plane =
        static_cast<double>(count(tensor.plane)) / static_cast<double>(count(tensor.copied));
    if (!move.beta_only) {
      const auto images = static_cast<double>(move.in_images);
      // Memory is read in whole sectors, so pixels of a row that are not picked are read as well.
      memory += images * there * static_cast<double>(tensor.stride[2]);
      copies += images * copied;
    }
    memory += static_cast<double>(move.out_images) * there * plane;
    copies += static_cast<double>(move.out_images) * copied;
  }
  const double rate = rates_of(device).memory;
  return clocks_to_seconds(0, 0, device) + ramp +
         std::max(memory / (rate * memory_share), (memory + copies) / (rate * cache_share));
}

std::string plane_refusal(const char* tensor, const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 1;
  for (const int i : {2, 1, 0}) {
    if (pixels[i] == 1) continue;
    if (strides[2 + i] != next)
      return cat("the pixels of a channel of ", tensor,
                 " do not lie side by side, as channels-first layout has them");
    next *= pixels[i];
  }
  return "";
}

void append_relaid(std::vector<Step>& steps, Proposal proposal, const RelaidPlaces& places) {
  const auto place = [&](Step step) {
    using Hole = LaunchSpec::Hole;
    for (LaunchSpec::Patch& patch : step.launch.patches)
      if (patch.hole == Hole::workspace) {
        put_first(step.launch, patch.offset, places.workspace);
      } else if (patch.hole == Hole::operand) {
        const RelaidPlaces::Place& to = places.operands[patch.operand];
        put_first(step.launch, patch.offset, to.first);
        if (to.in_workspace) patch.hole = Hole::workspace;
      }
    for (LaunchSpec::Map& map : step.launch.maps)
      if (map.operand == LaunchSpec::Map::workspace) {
        map.first += places.workspace;
      } else {
        const RelaidPlaces::Place& to = places.operands[map.operand];
        map.first += to.first;
        if (to.in_workspace) map.operand = LaunchSpec::Map::workspace;
      }
    steps.push_back(std::move(step));
  };
  place(static_cast<Step&>(proposal));
  for (Step& step : proposal.then) place(std::move(step));
}

void set_scalar(std::span<Step> steps, LaunchSpec::Hole hole, double value) {
  for (Step& step : steps) {
    LaunchSpec& launch = step.launch;
    for (const LaunchSpec::Patch& patch : launch.patches)
      if (patch.hole == hole)
        std::memcpy(launch.parameters.data() + patch.offset, &value, sizeof value);
    std::erase_if(launch.patches,
                  [&](const LaunchSpec::Patch& patch) { return patch.hole == hole; });
  }
}

Proposal proposal_of(std::vector<Step> steps, std::size_t workspace) {
  Proposal proposal;
  static_cast<Step&>(proposal) = std::move(steps.front());
  proposal.then.assign(std::make_move_iterator(steps.begin() + 1),
                       std::make_move_iterator(steps.end()));
  proposal.workspace = workspace;
  return proposal;
}

}  // namespace kiln
