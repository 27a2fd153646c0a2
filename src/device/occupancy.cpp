#include "device/occupancy.hpp"

#include <algorithm>

namespace kiln {
namespace {

// The most warps and blocks of a multiprocessor, from the CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability".
struct Residency {
  int warps, blocks;
};
Residency most_resident(int compute_capability) {
  switch (compute_capability) {
    case 75: return {32, 16};
    case 86:
    case 87: return {48, 16};
    case 89: return {48, 24};
    case 120:
    case 121: return {48, 24};
    default: return {64, 32};
  }
}

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

// How many warps have registers: each of the four quarters of a multiprocessor gives them to warps
// in units of 256.
int warps_by_registers(int registers, const DeviceDescription& device) {
  constexpr int warp_threads = 32, unit = 256, quarters = 4;
  const int each = round_up(registers * warp_threads, unit);
  return each == 0 ? device.registers_per_multiprocessor
                   : device.registers_per_multiprocessor / quarters / each * quarters;
}

// Shared memory that a block of `bytes` takes. From compute capability 8.0 on, the system reserves
// 1 KiB more.
int shared_memory_taken(int bytes, const DeviceDescription& device) {
  return device.compute_capability >= 80 ? round_up(bytes + 1024, 128) : round_up(bytes, 256);
}

}  // namespace

Occupancy occupancy_of(const BlockNeeds& block, const DeviceDescription& device) {
  const Residency most = most_resident(device.compute_capability);
  const int warps = std::max(1, (block.threads + 31) / 32);
  const int shared_memory = shared_memory_taken(block.shared_memory, device);
  Occupancy out;
  out.most_warps = most.warps;
  out.blocks = most.blocks;
  out.limit = "blocks";
  const auto limit = [&](int blocks, const char* by) {
    if (blocks < out.blocks) out.blocks = blocks, out.limit = by;
  };
  limit(most.warps / warps, "threads");
  limit(warps_by_registers(block.registers, device) / warps, "registers");
  if (shared_memory > 0)
    limit(device.shared_memory_per_multiprocessor / shared_memory, "shared memory");
  out.warps = out.blocks * warps;
  return out;
}

}  // namespace kiln
