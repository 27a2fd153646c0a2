// The device that these tests run on (KILN_TEST_DEVICE: host, the default, or cuda) and memory of
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kiln/kiln.h"

namespace test {

kilnDeviceKind_t device_kind();

// Memory of the device. On a GPU it is allocated by the driver, opened at run time as the library
// does, in the primary context.
void* allocate(std::size_t bytes);
void release(void* address);
void copy_in(void* device, const void* host, std::size_t bytes);
void copy_out(void* host, const void* device, std::size_t bytes);  // after all work on the device

// An array in the device's memory, filled from the host.
template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values)
      : count_(values.size()), address_(allocate(count_ * sizeof(T))) {
    copy_in(address_, values.data(), count_ * sizeof(T));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(address_); }

  T* data() const { return static_cast<T*>(address_); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    copy_out(values.data(), address_, count_ * sizeof(T));
    return values;
  }

 private:
  std::size_t count_;
  void* address_;
};

// The first multiple of 256 in a buffer, where a workspace may begin.
inline void* aligned(const Buffer<float>& buffer) {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  return buffer.data() + (256 - address % 256) % 256 / sizeof(float);
}

}  // namespace test
