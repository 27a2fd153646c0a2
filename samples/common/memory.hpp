// Memory of the samples: on a GPU from the driver, which is opened at run time, else ordinary.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kiln/kiln.h"

class Memory {
 public:
  // Throws std::runtime_error where there is no driver. For the GPU that Kiln's handle 0 is of.
  static std::unique_ptr<Memory> open(kilnDeviceKind_t kind);

  virtual ~Memory() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* address) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for the stream
};

// An array of floats in that memory.
class Array {
 public:
  Array(Memory& memory, std::size_t count)
      : memory_(&memory), count_(count), address_(memory.allocate(count * sizeof(float))) {
    upload(std::vector<float>(count));  // zeros
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { memory_->free(address_); }

  void* get() const { return address_; }
  std::size_t count() const { return count_; }
  void upload(const std::vector<float>& values) {
    memory_->upload(address_, values.data(), values.size() * sizeof(float));
  }
  std::vector<float> download() const {
    std::vector<float> values(count_);
    memory_->download(values.data(), address_, count_ * sizeof(float));
    return values;
  }

 private:
  Memory* memory_;
  std::size_t count_;
  void* address_;
};
