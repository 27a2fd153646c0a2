// Writes constants to a kernel's list of them, in the order of the calls.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "core/integer.hpp"
#include "core/magic.hpp"

namespace kiln {

class ConstantWriter {
 public:
  explicit ConstantWriter(std::vector<Constant>& constants) : constants_(constants) {}

  void operator()(const char* name, auto value, const char* comment = "") const {
    constants_.push_back({name, value, comment});
  }
  // A divisor of numbers up to limit32, and one of any number.
  void divisor(const char* name, std::int64_t by) const {
    (*this)(name, make_magic(static_cast<std::uint32_t>(by), static_cast<std::uint32_t>(limit32)));
  }
  void wide_divisor(const char* name, std::int64_t by) const {
    (*this)(name, make_wide_magic(static_cast<std::uint64_t>(by)));
  }

 private:
  std::vector<Constant>& constants_;
};

}  // namespace kiln
