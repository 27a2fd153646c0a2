// The shared memory of one thread block on the host device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::host {

// Every array has its own memory of exactly its size, so that AddressSanitizer sees accesses beyond
// its end. Defects of the kernel are thrown as EXECUTION_FAILED.
class BlockMemory {
 public:
  explicit BlockMemory(std::uint32_t limit) : limit_(limit) {}

  // A new block begins: every array is filled with bytes of 0xff, which are NaN as floats.
  void begin();

  // The block has exited, and its arrays must no longer be used.
  void end();

  // The array of `bytes` at `offset`, the same for every thread that asks.
  void* array(std::uint32_t offset, std::uint32_t bytes);

  // The place in `other`'s memory that corresponds to `mine`, which points into this block's.
  void* same_place_in(BlockMemory& other, const void* mine);

  // True if [address, address + bytes) lies within one array.
  bool contains(const void* address, std::size_t bytes) const;

 private:
  struct Free {
    void operator()(std::byte* address) const;
  };
  struct Array {
    std::uint32_t offset, bytes;
    std::unique_ptr<std::byte, Free> memory;
    bool holds(const void* address, std::size_t count) const;
  };

  const Array& find_or_make(std::uint32_t offset, std::uint32_t bytes);

  std::uint32_t limit_;  // bytes of the launch's dynamic shared memory
  bool ended_ = false;
  std::vector<Array> arrays_;
};

}  // namespace kiln::host
