#include "device/host/block_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"

namespace kiln::host {
namespace {

constexpr int poison = 0xff;

std::byte* allocate(std::uint32_t offset, std::uint32_t bytes) {
  // The memory is as aligned as the offset, up to 1024 bytes, the alignment of a block's memory.
  const std::uint32_t alignment = offset % 1024 == 0 ? 1024 : offset & (~offset + 1);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0)
    fail(KILN_STATUS_ALLOC_FAILED, "no memory for a shared array of ", bytes, " bytes");
  return static_cast<std::byte*>(memory);
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void BlockMemory::Free::operator()(std::byte* address) const { std::free(address); }

bool BlockMemory::Array::holds(const void* address, std::size_t count) const {
  const std::uintptr_t begin = number(memory.get());
  return number(address) >= begin && number(address) + count <= begin + bytes;
}

void BlockMemory::begin() {
  ended_ = false;
  for (const Array& array : arrays_) std::memset(array.memory.get(), poison, array.bytes);
}

void BlockMemory::end() {
  begin();
  ended_ = true;
}

void* BlockMemory::array(std::uint32_t offset, std::uint32_t bytes) {
  return find_or_make(offset, bytes).memory.get();
}

const BlockMemory::Array& BlockMemory::find_or_make(std::uint32_t offset, std::uint32_t bytes) {
  for (const Array& array : arrays_) {
    if (array.offset == offset && array.bytes == bytes) return array;
    if (array.offset == offset)
      fail(KILN_STATUS_EXECUTION_FAILED, "shared_array(", offset, ") has ", bytes,
           " bytes here and ", array.bytes, " bytes elsewhere; expected one size for an offset");
    if (offset < array.offset + array.bytes && array.offset < offset + bytes)
      fail(KILN_STATUS_EXECUTION_FAILED, "shared_array(", offset, ") of ", bytes,
           " bytes overlaps shared_array(", array.offset, ") of ", array.bytes, " bytes");
  }
  if (offset % 16 != 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "shared_array(", offset,
         ") is misaligned; expected a multiple of 16 bytes");
  if (offset > limit_ || bytes > limit_ - offset)
    fail(KILN_STATUS_EXECUTION_FAILED, "shared_array(", offset, ") of ", bytes, " bytes ends at ",
         std::uint64_t{offset} + bytes, "; the launch has ", limit_, " bytes of shared memory");
  arrays_.push_back({offset, bytes, {}});
  Array& array = arrays_.back();
  array.memory.reset(allocate(offset, bytes));
  std::memset(array.memory.get(), poison, bytes);
  return array;
}

void* BlockMemory::same_place_in(BlockMemory& other, const void* mine) {
  const auto array = std::ranges::find_if(
      arrays_, [&](const Array& candidate) { return candidate.holds(mine, 1); });
  if (array == arrays_.end())
    fail(KILN_STATUS_EXECUTION_FAILED,
         "cluster_shared got an address outside the shared arrays of its block");
  if (other.ended_)
    fail(KILN_STATUS_EXECUTION_FAILED,
         "cluster_shared asks for the memory of a block that has exited");
  const auto distance = number(mine) - number(array->memory.get());
  const std::uint32_t offset = array->offset, bytes = array->bytes;
  return static_cast<std::byte*>(other.array(offset, bytes)) + distance;
}

bool BlockMemory::contains(const void* address, std::size_t bytes) const {
  return std::ranges::any_of(arrays_,
                             [&](const Array& array) { return array.holds(address, bytes); });
}

}  // namespace kiln::host
