// Measured ceilings of the chip: the driver's own copy, and a kernel that does only multiply-adds.
#pragma once

#include <memory>
#include <optional>

#include "cli/bench/operands.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli::bench {

class Ceilings {
 public:
  Ceilings(Device& device, RandomPool& pool) : device_(device), pool_(pool) {}

  // The ceiling of a case: multiply-adds for convolutions in f32 (except TF32) and f64, a copy of
  // as many bytes for operations that are bound by memory, none for other convolutions. The case's
  // operands have to be allocated already.
  std::optional<Contestant> of(const Case& item);

  // The ceilings without a case: a copy of 256 MiB, multiply-adds in f32 and f64.
  std::vector<Contestant> alone();

 private:
  Contestant copy(std::size_t bytes);  // bytes read plus bytes written
  Contestant fma(DataType type);

  Device& device_;
  RandomPool& pool_;
  std::unique_ptr<DeviceBuffer> copied_, nothing_;
};

}  // namespace kiln::cli::bench
