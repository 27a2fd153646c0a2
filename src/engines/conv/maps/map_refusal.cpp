#include "engines/conv/maps/map_refusal.hpp"

#include <cstdlib>

#include "core/text.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

// Positions from the first to the last tap of a phase along dimension i (0: W, 1: H, 2: D).
std::int64_t reach(const Gather& gather, const Gather::Phase& phase, int i) {
  return (phase.taps[2 - i] - 1) * gather.step[2 - i];
}

}  // namespace

Refusal map_strides_refusal(const char* tensor, DataType type, const Dims& strides) {
  return vector_strides_refusal(tensor, strides, dense_vector(type));
}

Refusal map_phase_refusal(const Gather& gather, const Gather::Phase& phase) {
  if (phase.tap_count() == 0) return {};
  const DensePhase places = dense_phase(gather, phase);
  const int space = dense_space(gather);
  const std::int64_t corners = TensorMapSpec::most_corner(space),
                     offsets = TensorMapSpec::most_offset(space);
  for (int i = 0; i < space; ++i) {
    for (const std::int64_t corner : {places.lower[i], places.upper[i]})
      if (corner < -corners - 1 || corner > corners)
        return cat("pixels begin or end ", std::abs(corner),
                   " positions from an edge of the source; expected at most ", corners);
    if (std::abs(reach(gather, phase, i)) > offsets)
      return cat("the filter reaches over ", std::abs(reach(gather, phase, i)),
                 " positions; expected at most ", offsets);
  }
  return {};
}

Refusal traversal_stride_refusal(const Gather& gather) {
  constexpr std::int64_t most = 8;
  for (const std::int64_t stride : gather.stride)
    if (stride > most) return cat("a stride is ", stride, "; expected at most ", most);
  return {};
}

Refusal copy_engine_refusal(const DeviceDescription& device) {
  constexpr int least_driver = 12000;
  if (device.driver_version != 0 && device.driver_version < least_driver)
    return cat("the CUDA driver's version is ", device.driver_version, "; tensor maps need ",
               least_driver, " (CUDA 12.0) or later");
  return {};
}

}  // namespace kiln
