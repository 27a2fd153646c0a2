#include "engines/common/axes.hpp"

#include <algorithm>

namespace kiln {
namespace {

// Whether `outer` continues `inner` in memory in every tensor, so that the two form one axis.
bool continues(const Axis& outer, const Axis& inner) {
  if (outer.reduced != inner.reduced) return false;
  for (std::size_t i = 0; i < outer.strides.size(); ++i)
    if (outer.strides[i] != inner.strides[i] * inner.size) return false;
  return true;
}

}  // namespace

std::vector<Axis> image_axes(const Dims& dims, const std::vector<Dims>& strides,
                             std::size_t leading, const std::array<bool, operand_rank>& reduced) {
  std::vector<Axis> axes;
  for (int i = 1; i < operand_rank; ++i) {
    Axis axis{dims[i], {}, reduced[i]};
    for (const Dims& tensor : strides) axis.strides.push_back(tensor[i]);
    axes.push_back(axis);
  }
  return joined_axes(std::move(axes), leading);
}

std::vector<Axis> joined_axes(std::vector<Axis> axes, std::size_t leading) {
  std::erase_if(axes, [](const Axis& axis) { return axis.size == 1; });
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) {
    return a.strides[leading] > b.strides[leading];
  });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && continues(merged.back(), axis)) {
      merged.back().size *= axis.size;
      merged.back().strides = axis.strides;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

std::vector<Axis> padded(std::vector<Axis> axes, std::size_t count) {
  while (axes.size() < count) {
    const std::size_t tensors = axes.empty() ? 0 : axes.front().strides.size();
    axes.insert(axes.begin(), Axis{1, std::vector<std::int64_t>(tensors), false});
  }
  return axes;
}

}  // namespace kiln
