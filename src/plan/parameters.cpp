#include "plan/parameters.hpp"

#include <cstdint>
#include <cstring>

#include "core/error.hpp"

namespace kiln {

void encode_maps(LaunchSpec& launch, const Device& device) {
  if (launch.parameters.size() > most_parameter_bytes)
    fail(KILN_STATUS_INTERNAL_ERROR, "a kernel has ", launch.parameters.size(),
         " bytes of parameters; expected at most ", most_parameter_bytes);
  if (launch.empty) return;  // no map can describe an empty tensor
  for (const LaunchSpec::Map& map : launch.maps)
    device.encode_map(map.spec, std::span<std::byte, tensor_map_bytes>(
                                    launch.parameters.data() + map.offset, tensor_map_bytes));
}

std::span<const std::byte> fill_parameters(const LaunchSpec& launch, const Device& device,
                                           std::span<void* const> operands, void* workspace,
                                           const Scalars& scalars, const Iterations& iterations,
                                           ParameterBuffer& buffer) {
  std::byte* const parameters = buffer.bytes.data();
  std::memcpy(parameters, launch.parameters.data(), launch.parameters.size());
  for (const LaunchSpec::Stride& stride : launch.strides)
    if (!stride.of_map) advance(parameters, stride, iterations[stride.level]);
  for (const LaunchSpec::Patch& patch : launch.patches) {
    const auto put = [&](const auto& value) {
      std::memcpy(parameters + patch.offset, &value, sizeof value);
    };
    const auto put_address = [&](void* tensor) {
      std::int64_t first = 0;
      std::memcpy(&first, parameters + patch.offset, sizeof first);
      put(static_cast<std::byte*>(tensor) + first);
    };
    switch (patch.hole) {
      case LaunchSpec::Hole::operand: put_address(operands[patch.operand]); break;
      case LaunchSpec::Hole::alpha: put(scalars.alpha); break;
      case LaunchSpec::Hole::beta: put(scalars.beta); break;
      case LaunchSpec::Hole::alpha2: put(scalars.alpha2); break;
      case LaunchSpec::Hole::workspace: put_address(workspace); break;
    }
  }
  for (std::size_t i = 0; i < launch.maps.size(); ++i) {
    const LaunchSpec::Map& map = launch.maps[i];
    void* const tensor =
        map.operand == LaunchSpec::Map::workspace ? workspace : operands[map.operand];
    std::int64_t first = map.first;
    for (const LaunchSpec::Stride& stride : launch.strides)
      if (stride.of_map && stride.place == i) first += iterations[stride.level] * stride.each;
    device.set_map_address(parameters + map.offset, static_cast<std::byte*>(tensor) + first);
  }
  return {parameters, launch.parameters.size()};
}

}  // namespace kiln
