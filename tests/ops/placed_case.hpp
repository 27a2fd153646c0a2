// Runs operations on tensors at unusual addresses: aligned only to their elements, or with elements
// that are more than 2^31 apart.
#pragma once

#include "operation_case.hpp"

namespace test {

// Every tensor begins `shift` elements past an aligned address.
inline HostTensor run_shifted(const OperationCase& item, std::size_t shift,
                              const std::string& engine = {}) {
  const std::shared_ptr<Device> on = device();
  Plan plan(on, item.problem);
  plan.finalize({.grant = {.only_engine = engine}});
  const std::size_t skipped = shift * size_of(item.result().operand.type);
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<void*> operands;
  for (const HostTensor& tensor : item.tensors) {
    std::vector<std::byte> bytes = tensor.bytes();
    bytes.insert(bytes.begin(), skipped, std::byte{0});
    buffers.push_back(std::make_unique<DeviceBuffer>(*on, bytes));
    operands.push_back(static_cast<std::byte*>(buffers.back()->address()) + skipped);
  }
  plan.execute(operands, item.scalars, nullptr);
  std::vector<std::byte> bytes = buffers.back()->read();
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(skipped));
  HostTensor out = item.result();
  out.read(bytes);
  return out;
}

// Runs the problem `wide` with the elements of `item`, whose tensors are dense. The whole address
// space of the tensors of `wide` is reserved, but only a few pages are touched.
inline HostTensor run_wide(const OperationCase& item, const Problem& wide,
                           const std::string& engine = {}) {
  const std::shared_ptr<Device> on = device();
  Plan plan(on, wide);
  plan.finalize({.grant = {.only_engine = engine}});
  const std::vector<Operand> far = operands_of(wide);
  std::vector<void*> operands;
  const auto each = [&](std::size_t i, const auto& copy) {
    const Operand& near = item.tensors[i].operand;
    const std::size_t size = size_of(near.type);
    for (std::int64_t j = 0; j < near.count(); ++j)
      copy(static_cast<std::byte*>(operands[i]) + static_cast<std::size_t>(far[i].offset(j)) * size,
           static_cast<std::size_t>(near.offset(j)) * size, size);
  };
  for (std::size_t i = 0; i < far.size(); ++i) {
    operands.push_back(
        on->allocate(static_cast<std::size_t>(far[i].span()) * size_of(far[i].type)));
    const std::vector<std::byte> bytes = item.tensors[i].bytes();
    each(i, [&](std::byte* to, std::size_t from, std::size_t size) {
      on->copy_in(to, bytes.data() + from, size);
    });
  }
  plan.execute(operands, item.scalars, nullptr);
  on->synchronize(nullptr);
  std::vector<std::byte> bytes = item.result().bytes();
  each(far.size() - 1, [&](std::byte* from, std::size_t to, std::size_t size) {
    on->copy_out(bytes.data() + to, from, size);
  });
  for (void* const address : operands) on->free(address);
  HostTensor out = item.result();
  out.read(bytes);
  return out;
}

}  // namespace test
