// Shared by the getters of descriptors.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/error.hpp"

namespace kiln::cudnn {

// Writes to an output, unless the caller passed null.
template <class Value>
void give(const Value& value, Value* to) {
  if (to != nullptr) *to = value;
}

// Writes the sizes of a result to the caller's array. Throws NOT_SUPPORTED, and writes nothing, if
// one does not fit.
inline void give_sizes(std::span<const std::int64_t> sizes, int* to) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > most)
      fail(KILN_STATUS_NOT_SUPPORTED, "dimension ", i, " of the result has ", sizes[i],
           " elements; expected at most ", most);
  for (std::size_t i = 0; i < sizes.size(); ++i) to[i] = static_cast<int>(sizes[i]);
}

}  // namespace kiln::cudnn
