// All that a convolution writes whose epilogue has results of its own, compared with the reference.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "ops/operation_case.hpp"

namespace test {

// A chip of so many multiprocessors, and so of as many blocks.
inline DeviceDescription device_of(int multiprocessors) {
  DeviceDescription description = device()->description();
  description.multiprocessors = multiprocessors;
  return description;
}

struct WrittenResults {
  std::vector<HostTensor> tensors;  // all operands, afterwards
  std::vector<std::byte> bytes;     // of those that are written

  const HostTensor& last() const { return tensors.back(); }
  const HostTensor& operator[](std::string_view name) const {
    for (const HostTensor& each : tensors)
      if (each.operand.name == name) return each;
    return tensors.at(tensors.size());  // throws
  }
};

// Executes a plan; its workspace and all bytes of results are 0xff before.
inline WrittenResults run_all(const OperationCase& item, const FinalizeOptions& options) {
  const std::shared_ptr<Device> on = device();
  Plan plan(on, item.problem);
  plan.finalize(options);
  const DeviceBuffer lent(*on, std::vector<std::byte>(plan.workspace_bytes(), std::byte{0xff}));
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<void*> operands;
  for (const HostTensor& each : item.tensors) {
    buffers.push_back(std::make_unique<DeviceBuffer>(*on, each.bytes()));
    operands.push_back(buffers.back()->address());
  }
  plan.execute(operands, item.scalars, nullptr, {}, {lent.address(), plan.workspace_bytes()});
  WrittenResults out;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::vector<std::byte> bytes = buffers[i]->read();
    out.tensors.push_back(item.tensors[i]);
    out.tensors.back().read(bytes);
    if (item.tensors[i].operand.written)
      out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  }
  return out;
}

inline WrittenResults run_all(const OperationCase& item, const Proposal& proposal) {
  FinalizeOptions options;
  options.choice = Choice{proposal, 0, false};
  return run_all(item, options);
}

// The first fault beyond the reference's bounds; "" if there is none. What an epilogue makes of the
// result is compared with what the reference makes of the result as it was stored.
inline std::string fault_of(const OperationCase& item, const WrittenResults& results) {
  if (std::string fault = item.fault(results.last()); !fault.empty()) return fault;
  OperationData stored = item;
  stored.result() = results.last();
  std::vector<std::vector<std::byte>> memory;
  for (const HostTensor& each : stored.tensors) memory.push_back(each.bytes());
  std::vector<const void*> operands;
  for (const auto& bytes : memory) operands.push_back(bytes.data());
  for (std::size_t which = 0; which + 1 < results.tensors.size(); ++which) {
    const HostTensor& got = results.tensors[which];
    if (!got.operand.written) continue;
    std::vector<std::int64_t> indices(static_cast<std::size_t>(got.operand.count()));
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    const auto expected = reference::expect(item.problem, item.scalars, operands, indices, 0,
                                            static_cast<int>(which));
    const double u = reference::unit_roundoff(got.operand.type);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const double value = expected[i].value, found = got.at(indices[i]);
      if ((std::isnan(found) && std::isnan(value)) || found == value) continue;
      if (std::fabs(found - value) <= expected[i].allowed + u * std::fabs(value)) continue;
      return cat(text_of(item.problem), ": ", got.operand.name, "[",
                 got.operand.coordinates(indices[i]), "] is ", found, ", expected ", value,
                 " within ", expected[i].allowed);
    }
  }
  return "";
}

inline OperationCase uniform(const ConvolutionProblem& problem, unsigned seed,
                             const Scalars& scalars = {}) {
  OperationCase item(problem);
  item.scalars = scalars;
  item.fill_uniform(seed);
  return item;
}

}  // namespace test
