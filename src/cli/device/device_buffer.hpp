// Memory of a device, freed with the object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "device/device.hpp"

namespace kiln::cli {

class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, std::size_t bytes)
      : device_(device),
        bytes_(bytes),
        address_(device.allocate(std::max<std::size_t>(bytes_, 1))) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  // A device whose context has failed cannot free memory; that failure was reported when it
  // happened.
  ~DeviceBuffer() {
    try {
      device_.free(address_);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  std::byte* address() const { return static_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }
  void fill(std::span<const std::byte> content) {
    if (!content.empty()) device_.copy_in(address_, content.data(), content.size());
  }
  std::vector<std::byte> content() const {
    std::vector<std::byte> content(bytes_);
    if (bytes_ > 0) device_.copy_out(content.data(), address_, bytes_);
    return content;
  }

 private:
  Device& device_;
  std::size_t bytes_;
  void* address_;
};

}  // namespace kiln::cli
