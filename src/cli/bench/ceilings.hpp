// Measured ceilings of the chip: the driver's own copy, and a kernel of nothing but multiply-adds.
#pragma once

#include <memory>
#include <optional>

#include "cli/bench/operands.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli::bench {

class Ceilings {
 public:
  Ceilings(Device& device, RandomPool& pool) : device_(device), pool_(pool) {}

  // The ceiling of a case, whose operands there already are: FMA for convolutions in f32 (but for
  // TF32) and f64, a copy of as many bytes for the operations that memory bounds, none for
  // convolutions on 16 bits.
  std::optional<Contestant> of(const Case& item);

  // Both by themselves: a copy of 256 MiB, FMA in f32 and f64.
  std::vector<Contestant> alone();

 private:
  Contestant copy(std::size_t bytes);  // read and written together
  Contestant fma(DataType type);

  Device& device_;
  RandomPool& pool_;
  std::unique_ptr<DeviceBuffer> copied_, nothing_;
};

}  // namespace kiln::cli::bench
