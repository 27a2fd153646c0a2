#include "engines/conv/relayout/copies.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "codegen/loops.hpp"
#include "conv/relayout/channels_last_copies_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t threads = 256, shared_bytes = CHANNELS_LAST_TILES * 16 * 1024;
constexpr std::int64_t tile_bytes = 8192, unit_bytes = 16;
constexpr int least_tile_log = 4, most_tile_log = 9;

std::int64_t count(const Spatial& pixels) { return pixels[0] * pixels[1] * pixels[2]; }

// A range's pixels. Those of the copy are `before` zeros, `there` of the tensor's, and zeros.
struct PixelRun {
  std::int64_t first;          // pixel of the caller's image at which the range begins
  std::int64_t before, there;  // pixels of the copy, or of the caller's image if these are walked
  std::int64_t pixels;         // to walk of an image
};
PixelRun run_of(const RelayoutTensor& tensor, const RelayoutRange& range) {
  const std::size_t cut = tensor.cut;
  std::int64_t row = 1, plane_row = 1;  // pixels of a row of the copy, of the tensor
  for (std::size_t i = cut + 1; i < 3; ++i) row *= tensor.copied[i], plane_row *= tensor.plane[i];
  const std::int64_t begin = std::max<std::int64_t>(range.row, 0),
                     end = std::min(range.row + range.rows, tensor.copied[cut]),
                     first = begin * tensor.stride[cut] * plane_row;
  if (tensor.pixels == RelayoutTensor::Pixels::spread) {
    const std::int64_t pixels =
        std::min(end * tensor.stride[cut], tensor.plane[cut]) * plane_row - first;
    return {first, 0, pixels, pixels};
  }
  return {first, std::min(begin - range.row, range.rows) * row,
          std::max<std::int64_t>(end - begin, 0) * row, range.rows * row};
}

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
void set_planes(ChannelsLastCopy& copy, const RelayoutTensor& tensor) {
  using Pixels = RelayoutTensor::Pixels;
  copy.walk = tensor.pixels == Pixels::spread   ? WALK_SPREAD
              : tensor.pixels == Pixels::picked ? WALK_PICKED
                                                : WALK_ALIKE;
  const std::int64_t tile = tile_bytes / static_cast<std::int64_t>(size_of(tensor.type)),
                     pixels = std::max(copy.out_pixels, copy.in_pixels);
  copy.tile_log = number(tile_log(pixels, tensor.channels, tile));
  copy.pixel_tiles = number(ceil_div(pixels, std::int64_t{1} << copy.tile_log));
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
void set_rows(ChannelsLastCopy& copy, const RelayoutTensor& tensor) {
  const auto element = static_cast<std::int64_t>(size_of(tensor.type));
  copy.walk = WALK_ROWS;
  copy.out_pixels *= copy.out_images;
  copy.in_pixels *= copy.in_images;
  copy.in_there *= copy.images_there;
  if (tensor.copied_channels * element % unit_bytes != 0) {
    copy.channels *= copy.last_pixels * number(tensor.images);
    copy.last_channels *= copy.last_pixels * number(tensor.copied_images);
    copy.out_pixels = std::min(copy.out_pixels, 1u);
    copy.in_pixels = copy.in_there = std::min(copy.in_pixels, 1u);
  }
  const std::int64_t bytes =
      element * copy.last_channels * std::max(copy.out_pixels, copy.in_pixels);
  copy.tiles = number(ceil_div(bytes, tile_bytes));
}

// The element of the caller's tensor at which a range begins, or its first row that the tensor has.
std::int64_t first_element(const RelayoutTensor& tensor, const RelayoutRange& range) {
  const std::int64_t pixel = tensor.order == RelayoutTensor::Order::rows ? tensor.channels : 1;
  return range.first * tensor.image_stride + run_of(tensor, range).first * pixel;
}

// Makes images of the planes of which a launch copies some rows. Both ranges have equally many, or
// none.
void set_planes_as_images(ChannelsLastCopy& copy, const RelayoutMove& move) {
  const RelayoutTensor& tensor = *move.tensor;
  copy.image = tensor.row_strides[0];
  for (unsigned* const images : {&copy.out_images, &copy.in_images, &copy.images_there})
    if (*images > 0) *images = number(std::max(move.out.planes, move.in.planes));
  copy.last_pixels = std::max(copy.out_pixels, copy.in_pixels);
}

ChannelsLastCopy copy_of(const RelayoutMove& move) {
  const RelayoutTensor& tensor = *move.tensor;
  ChannelsLastCopy copy{};
  copy.image = tensor.image_stride;
  copy.channel = tensor.channel_stride;
  const PixelRun out = run_of(tensor, move.out), in = run_of(tensor, move.in);
  copy.in_span = tensor.span - first_element(tensor, move.in);
  copy.out_images = number(move.out.images);
  copy.in_images = number(move.in.images);
  copy.images_there = number(std::min(move.in.images, tensor.images - move.in.first));
  copy.out_pixels = number(out.pixels);
  copy.in_pixels = number(in.pixels);
  copy.in_before = number(in.before);
  copy.in_there = number(in.there);
  copy.in_with_beta = move.beta_only ? 1 : 0;
  copy.channels = number(tensor.channels);
  copy.last_channels = number(tensor.copied_channels);
  copy.last_pixels = number(count(tensor.copied));
  if (move.in.planes > 1 || move.out.planes > 1) set_planes_as_images(copy, move);
  if (tensor.order == RelayoutTensor::Order::rows)
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

std::size_t RelayoutTensor::row_bytes() const {
  std::int64_t elements = copied_channels;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != cut) elements *= copied[i];
  return static_cast<std::size_t>(elements) * size_of(type);
}

Step copies_step(std::span<const RelayoutMove> moves, const std::string& engine,
                 const std::string& tile) {
  Step step;
  KernelSpec& spec = step.kernel;
  spec.engine = engine;
  spec.file = "conv/relayout/channels_last_copies.cu";
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
    const RelayoutTensor& tensor = *moves[i].tensor;
    const auto add = [&](Hole hole, std::size_t field, std::int64_t first) {
      const std::size_t offset =
          offsetof(ChannelsLastParams, copies) + i * sizeof(ChannelsLastCopy) + field;
      launch.patches.push_back({hole, tensor.operand, static_cast<std::uint16_t>(offset)});
      put_first(launch, offset, first);
    };
    const auto element = static_cast<std::int64_t>(size_of(type));
    add(Hole::operand, offsetof(ChannelsLastCopy, out),
        first_element(tensor, moves[i].out) * element);
    add(Hole::operand, offsetof(ChannelsLastCopy, in),
        first_element(tensor, moves[i].in) * element);
    add(Hole::workspace, offsetof(ChannelsLastCopy, last), static_cast<std::int64_t>(tensor.first));
  }
  launch.patches.push_back({Hole::beta, 0, offsetof(ChannelsLastParams, beta)});
  return step;
}

double copies_seconds(std::span<const RelayoutMove> moves, const DeviceDescription& device) {
  // The caller's tensor is in memory, the copy in the L2 cache. By an H200's times: the share of
  // memory's rate that is reached, L2's rate relative to memory's, and seconds until all
  // multiprocessors copy.
  constexpr double memory_share = 0.65, cache_share = 1.3, ramp = 1.5e-6;
  double memory = 0, copies = 0;
  for (const RelayoutMove& move : moves) {
    const RelayoutTensor& tensor = *move.tensor;
    const auto pixel =
        static_cast<double>(tensor.channels) * static_cast<double>(size_of(tensor.type));
    if (!move.beta_only) {
      // Memory is read in whole sectors, so pixels of a row that are not picked are read as well.
      memory += pixel * static_cast<double>(move.in.images * move.in.planes *
                                            run_of(tensor, move.in).there * tensor.stride[2]);
      copies += static_cast<double>(move.in.bytes(tensor));
    }
    memory += pixel * static_cast<double>(move.out.images * move.out.planes *
                                          run_of(tensor, move.out).pixels);
    copies += static_cast<double>(move.out.bytes(tensor));
  }
  const double rate = rates_of(device).memory;
  return clocks_to_seconds(0, 0, device) + ramp +
         std::max(memory / (rate * memory_share), (memory + copies) / (rate * cache_share));
}

void append_relayout(StepList& list, const StepList& proposal, const RelayoutPlaces& places) {
  StepList placed = proposal;
  const auto place = [&](Step& step) {
    using Hole = LaunchSpec::Hole;
    for (LaunchSpec::Patch& patch : step.launch.patches)
      if (patch.hole == Hole::workspace) {
        put_first(step.launch, patch.offset, places.workspace);
      } else if (patch.hole == Hole::operand) {
        const RelayoutPlaces::Place& to = places.operands[patch.operand];
        put_first(step.launch, patch.offset, to.first);
        if (to.in_workspace) patch.hole = Hole::workspace;
      }
    for (LaunchSpec::Map& map : step.launch.maps)
      if (map.operand == LaunchSpec::Map::workspace) {
        map.first += places.workspace;
      } else {
        const RelayoutPlaces::Place& to = places.operands[map.operand];
        map.first += to.first;
        if (to.in_workspace) map.operand = LaunchSpec::Map::workspace;
      }
  };
  for (Step& step : placed.steps) place(step);
  append(list, std::move(placed));
}

Proposal behind_copy(const RelayoutTensor& tensor, const Proposal& second, std::size_t operands) {
  const KernelSpec& named = second.first().kernel;
  const RelayoutMove move{.tensor = &tensor, .in = whole_images(tensor, tensor.images)};
  RelayoutPlaces places;
  places.operands.resize(operands);
  places.operands[tensor.operand].in_workspace = true;
  StepList steps;
  steps.steps.push_back(copies_step(std::span(&move, 1), named.engine, named.tile));
  append_relayout(steps, second, places);
  return {std::move(steps), tensor.bytes()};
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

}  // namespace kiln
