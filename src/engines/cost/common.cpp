#include "engines/cost/common.hpp"

namespace kiln {
namespace {

// Registers that a thread needs besides its accumulators.
constexpr double registers_beside_sums = 88;

}  // namespace

int blocks_by_memory(double bytes, const DeviceDescription& device) {
  constexpr double reserved = 1024;  // of a block, by the driver
  return static_cast<int>(
      std::clamp(device.shared_memory_per_multiprocessor / (bytes + reserved), 1.0, 32.0));
}

int resident_blocks(double shared_memory, double thread_sums, double warps,
                    const DeviceDescription& device) {
  const double registers = std::min(255.0, thread_sums + registers_beside_sums);
  const double by_registers =
      device.registers_per_multiprocessor / (std::ceil(registers / 8) * 8 * warps * warp);
  return std::min(blocks_by_memory(shared_memory, device),
                  static_cast<int>(std::max(by_registers, 1.0)));
}

}  // namespace kiln
