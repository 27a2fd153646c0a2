// What getters of descriptors share.
#pragma once

namespace kiln::cudnn {

// Writes to an output that the caller wants.
template <class Value>
void give(const Value& value, Value* to) {
  if (to != nullptr) *to = value;
}

}  // namespace kiln::cudnn
