// Shared by the getters of descriptors.
#pragma once

namespace kiln::cudnn {

// Writes to an output, unless the caller passed null.
template <class Value>
void give(const Value& value, Value* to) {
  if (to != nullptr) *to = value;
}

}  // namespace kiln::cudnn
