// A cuDNN handle: Kiln's handle, its device and its stream.
#pragma once

#include <cudnn.h>

#include <memory>

#include "api/checks.hpp"
#include "cudnn/forward/twin.hpp"
#include "kiln/base.hpp"

namespace kiln::cudnn {
class Scratch;
}

struct cudnnContext {
  static constexpr auto kind = "a handle", creator = "cudnnCreate";
  static constexpr std::uint32_t mark_value = 0x6b636401;
  cudnnContext(kilnDeviceKind_t device, int number)
      : handle(device, number), device_kind(device), ordinal(number) {}

  kiln::api::Mark mark{mark_value};
  kiln::Handle handle;
  const kilnDeviceKind_t device_kind;
  const int ordinal;
  void* stream = nullptr;
  kiln::cudnn::Twin<cudnnHandle_t> twin;
  std::shared_ptr<kiln::cudnn::Scratch> scratch;  // made when first needed: scratch_of()
};

namespace kiln::cudnn {

inline cudnnContext& context_of(cudnnHandle_t handle) { return api::checked(handle, "handle"); }

}  // namespace kiln::cudnn
