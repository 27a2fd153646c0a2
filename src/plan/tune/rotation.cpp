#include "plan/tune/rotation.hpp"

#include <algorithm>
#include <cstdint>

namespace kiln {
namespace {

constexpr std::size_t alignment = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// A piece of memory that operands share, and where a set of copies has it.
struct Region {
  std::uintptr_t begin = 0, end = 0;
  std::size_t offset = 0;
};

// The memory of all operands in the order of addresses: operands that overlap are one region. The
// offsets keep the addresses' alignment if a set begins at a multiple of it.
std::vector<Region> regions_of(const std::vector<Operand>& operands,
                               std::span<void* const> addresses) {
  std::vector<Region> regions;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(addresses[i]);
    const std::size_t bytes = operands[i].span() * size_of(operands[i].type);
    regions.push_back({begin, begin + bytes, 0});
  }
  std::ranges::sort(regions, {}, &Region::begin);
  std::vector<Region> joined;
  for (const Region& region : regions)
    if (!joined.empty() && region.begin < joined.back().end)
      joined.back().end = std::max(joined.back().end, region.end);
    else
      joined.push_back(region);
  std::size_t offset = 0;
  for (Region& region : joined) {
    region.offset = offset + region.begin % alignment;
    offset = aligned(region.offset + (region.end - region.begin));
  }
  return joined;
}

std::size_t bytes_of(const std::vector<Region>& regions) {
  const Region& last = regions.back();
  return aligned(last.offset + (last.end - last.begin));
}

std::size_t offset_of(const std::vector<Region>& regions, const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  auto region = std::ranges::upper_bound(regions, place, {}, &Region::begin);
  --region;
  return region->offset + (place - region->begin);
}

}  // namespace

int sets_beyond_l2(std::int64_t l2_bytes, std::size_t bytes) {
  constexpr std::int64_t most = 256;
  const auto each = static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1));
  return static_cast<int>(std::min(2 * l2_bytes / each + 1, most));
}

Rotation::Rotation(Device& device, const Problem& problem, std::span<void* const> operands,
                   std::span<std::byte> spare, void* stream)
    : sets_{{operands.begin(), operands.end()}} {
  const std::vector<Region> regions = regions_of(operands_of(problem), operands);
  const auto lies_in_spare =
      [&, begin = reinterpret_cast<std::uintptr_t>(spare.data())](const Region& region) {
        return region.begin < begin + spare.size() && begin < region.end;
      };
  if (std::ranges::any_of(regions, lies_in_spare)) return;
  const std::size_t bytes = bytes_of(regions);
  const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(spare.data()) % alignment;
  if (unaligned != 0) spare = spare.subspan(std::min(alignment - unaligned, spare.size()));
  const int wanted = sets_beyond_l2(device.description().l2_bytes, bytes);
  for (int set = 1; set < wanted && spare.size() >= bytes; ++set) {
    std::vector<void*>& copy = sets_.emplace_back();
    for (void* const address : operands) copy.push_back(spare.data() + offset_of(regions, address));
    for (const Region& region : regions)
      device.copy(spare.data() + region.offset, reinterpret_cast<const void*>(region.begin),
                  region.end - region.begin, stream);
    spare = spare.subspan(bytes);
  }
}

}  // namespace kiln
