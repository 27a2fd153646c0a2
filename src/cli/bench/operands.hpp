// Random operands of a case, in several sets on the device: executions rotate through the sets, so
// that a set has left the L2 cache when it is used again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/bench/measurement.hpp"
#include "cli/bench/suite.hpp"
#include "cli/device/device_buffer.hpp"
#include "cli/operation/compare.hpp"

namespace kiln::cli::bench {

// Random elements of one type at a time, on the host and on the device. Operands are parts of the
// pool, so that cases need not generate and copy random data of their own.
class RandomPool {
 public:
  RandomPool(Device& device, std::uint64_t seed) : device_(device), seed_(seed) {}

  // Provides at least `elements` elements of a type. Earlier pointers into the pool become invalid.
  void require(DataType type, std::int64_t elements);
  const std::byte* host() const { return host_.data(); }
  const std::byte* device() const { return on_device_->address(); }
  std::uint64_t seed() const { return seed_; }

  // Fills `bytes` of device memory with the pool's elements, repeated as often as needed.
  void fill(std::byte* memory, std::size_t bytes) const;

 private:
  Device& device_;
  std::uint64_t seed_;
  std::optional<DataType> type_;
  std::vector<std::byte> host_;
  std::unique_ptr<DeviceBuffer> on_device_;
};

// The number of sets of `bytes` bytes to rotate through, within a share of the device's memory.
int sets_of(const DeviceDescription& device, std::size_t bytes);

class Operands {
 public:
  Operands(Device& device, RandomPool& pool, const Case& item);

  BufferSet set(int index) const;
  BufferSet next() { return set(turn_++); }
  int sets() const { return static_cast<int>(addresses_.size()); }

  // The first set with its initial content; an output that is not read holds NaN.
  BufferSet fresh();
  // Compares the output of that set with the reference, which is computed on first use.
  Comparison compare();

 private:
  void write(int set, std::size_t operand);

  Device& device_;
  RandomPool& pool_;
  const Case& case_;
  std::vector<Operand> operands_;
  std::vector<std::size_t> pool_offsets_, offsets_;  // in bytes, of operands in the pool, in a set
  std::size_t set_bytes_ = 0;
  std::unique_ptr<DeviceBuffer> memory_;
  std::vector<std::vector<void*>> addresses_;
  std::optional<Samples> samples_;
  int turn_ = 0;
};

}  // namespace kiln::cli::bench
