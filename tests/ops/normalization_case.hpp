// Tensors and descriptors of normalizations, and a problem with fresh data, all of whose results
// are compared with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engines/choice.hpp"
#include "engines/engine.hpp"
#include "operation_case.hpp"

namespace test {

constexpr kilnTensorFormat_t normalization_layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};

inline Tensor tensor_of(DataType type, const std::vector<std::int64_t>& dims,
                        kilnTensorFormat_t layout = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = type;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  out.strides = dense_strides(layout, out.rank, out.dims);
  return out;
}

inline NormalizationSpec with(kilnActivationMode_t mode) {
  NormalizationSpec spec;
  spec.activation = make_activation(default_activation(mode));
  return spec;
}

// One problem with fresh data, all of whose results are looked at.
struct NormalizationCase : OperationData {
  unsigned seed = std::random_device{}();

  explicit NormalizationCase(const Problem& p) : OperationData(p) {
    scalars.alpha2 = 0.125;
    unsigned next = seed;
    for (HostTensor& t : tensors) {
      if (t.operand.written && !t.operand.updated) continue;
      if (t.operand.positive)
        t.fill_uniform(next++, 0.5, 2);
      else
        t.fill_uniform(next++, -1, 1);
    }
  }
  void move_x(double mean, double deviation) {
    for (double& value : (*this)["x"].values) value = mean + deviation * value;
    (*this)["x"].read((*this)["x"].bytes());
  }
  void reread_result() {
    scalars = {0.5, -0.75, 0.125};
    result().fill_uniform(seed + 99, -1, 1);
  }

  struct Run {
    std::vector<HostTensor> tensors;
    std::vector<std::vector<std::byte>> bytes;
  };
  // `by_parts`: with workspace, by the candidate with a step that combines parts.
  Run run(bool by_parts = false, bool in_place = false) const {
    const std::shared_ptr<Device> on = device();
    Plan plan(on, problem);
    FinalizeOptions options;
    if (by_parts) {
      for (const Engine* engine : engines()) {
        if (!engine->is_for(problem)) continue;
        auto answer = engine->candidates(problem, on->description());
        auto& candidates = std::get<std::vector<Candidate>>(answer);
        options.choice = Choice{std::move(candidates.back().made).value(), 0, false};
      }
    }
    plan.finalize(options);
    const DeviceBuffer lent(*on, std::vector<std::byte>(plan.workspace_bytes(), std::byte{0xff}));
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::vector<void*> operands;
    for (const HostTensor& t : tensors) {
      buffers.push_back(std::make_unique<DeviceBuffer>(*on, t.bytes()));
      operands.push_back(buffers.back()->address());
    }
    if (in_place) operands.back() = operands.front();
    plan.execute(operands, scalars, nullptr, {}, {lent.address(), plan.workspace_bytes()});
    Run out;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      out.bytes.push_back(buffers[in_place && i + 1 == tensors.size() ? 0 : i]->read());
      out.tensors.emplace_back(tensors[i].operand);
      out.tensors.back().read(out.bytes.back());
    }
    return out;
  }

  // The worst fault of any result, and any input that changed; "" if there is none.
  std::string fault_of(const Run& run, bool in_place = false) const {
    std::vector<std::vector<std::byte>> memory;
    for (const HostTensor& t : tensors) memory.push_back(t.bytes());
    std::vector<const void*> operands;
    for (const auto& bytes : memory) operands.push_back(bytes.data());
    for (std::size_t r = 0; r < tensors.size(); ++r) {
      const Operand& operand = tensors[r].operand;
      if (!operand.written) {
        if (run.bytes[r] != memory[r] && !(in_place && r == 0))
          return cat(operand.name, " was written");
        continue;
      }
      std::vector<std::int64_t> indices(static_cast<std::size_t>(operand.count()));
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
      const auto elements =
          reference::expect(problem, scalars, operands, indices, 0, static_cast<int>(r));
      const auto format = reference::format_of(operand.type);
      HostTensor gaps = run.tensors[r];
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const auto index = static_cast<std::int64_t>(i);
        const double have = run.tensors[r].at(index), value = elements[i].value;
        gaps.at(index) = std::nan("");
        const double bound =
            elements[i].allowed + format.unit_roundoff() * std::fabs(value) + format.smallest() / 2;
        if (have == reference::within(operand.type, reference::round_to_format(value, format)) ||
            (std::isnan(have) && std::isnan(value)) || std::fabs(have - value) <= bound)
          continue;
        return cat(text_of(problem), " seed ", seed, ": ", operand.name, "[",
                   operand.coordinates(index), "] is ", have, ", expected ", value, " within ",
                   bound);
      }
      for (const double value : gaps.values)
        if (!std::isnan(value)) return cat("between elements of ", operand.name);
    }
    return "";
  }
  std::string fault(bool by_parts = false) const { return fault_of(run(by_parts)); }
};

}  // namespace test
