// What the fuzz targets of the C API share: values out of an input, and what must hold of a status.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/objects.hpp"
#include "core/enumeration.hpp"
#include "core/error.hpp"
#include "engines/choice.hpp"
#include "kiln/kiln.h"
#include "plan/parameters.hpp"

namespace fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Values out of the input's bytes; zeros once they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  // Mostly small, so that many inputs get past the first check; sometimes anything.
  std::int64_t number() {
    const std::uint8_t first = byte();
    if (first < 224) return first % 32;
    if (first < 240) return static_cast<std::int64_t>(1) << (first % 16 * 4 + byte() % 4);
    if (first < 248) return -static_cast<std::int64_t>(byte());
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    return static_cast<std::int64_t>(bits);
  }

  // One of an enumeration's first `count` values, rarely something else.
  template <class Enum>
  Enum enumerator(std::size_t count = SIZE_MAX) {
    const auto values = kiln::enumeration_of(Enum{}).values;
    const std::size_t value = byte();
    if (value < 250) return static_cast<Enum>(values[value % std::min(count, values.size())].value);
    return static_cast<Enum>(value < 253 ? static_cast<int>(value) - 252 : values.back().value + 1);
  }

  int rank() {
    const int value = byte();
    return value < 200 ? 3 + value % 3 : value < 250 ? 1 + value % KILN_DIM_MAX : value - 252;
  }

  // Of `rank` dimensions, but five at least.
  using Array = std::array<std::int64_t, KILN_DIM_MAX>;
  Array numbers(int rank = 5) {
    Array out{};
    for (int i = 0; i < std::clamp(rank, 5, KILN_DIM_MAX); ++i) out[i] = number();
    return out;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

inline bool succeeded(kilnStatus_t status) {
  require(status == KILN_STATUS_SUCCESS || status == KILN_STATUS_BAD_PARAM ||
          status == KILN_STATUS_NOT_INITIALIZED || status == KILN_STATUS_NOT_SUPPORTED);
  require(status == KILN_STATUS_SUCCESS || std::strlen(kilnGetLastErrorMessage()) > 10);
  return status == KILN_STATUS_SUCCESS;
}

inline kilnHandle_t handle() {
  static const kilnHandle_t instance = [] {
    kilnHandle_t out = nullptr;
    require(kilnCreate(&out, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
    return out;
  }();
  return instance;
}

// Every engine, on a GPU's description and on the host's: it refuses with a reason, or proposes
// what can be launched.
inline void ask_engines(kilnPlan_t plan) {
  static const kiln::DeviceDescription devices[] = {kiln::known_architecture("sm_90a"),
                                                    kiln::known_architecture("sm_75"),
                                                    handle()->device->description()};
  const kiln::Problem& problem = plan->plan.problem();
  for (const kiln::DeviceDescription& device : devices) {
    for (const kiln::Method* method : kiln::methods()) {
      if (!method->is_for(problem)) continue;
      std::vector<kiln::EngineRefusal> refusals;
      kiln::Proposal proposal;
      try {
        proposal = kiln::choose(problem, device, {.only_engine = method->name()}, refusals);
      } catch (const kiln::Error& error) {
        require(error.status() == KILN_STATUS_NOT_SUPPORTED);
        continue;
      }
      require(proposal.workspace == 0);  // nothing was granted
      const auto check = [&](const kiln::Step& step) {
        const auto& [kernel, launch] = step;
        const auto& [x, y, z] = launch.shape.block;
        require(x > 0 && y > 0 && z > 0 && x * y * z <= 1024);
        require(kernel.shared_memory <= static_cast<std::uint32_t>(device.shared_memory_per_block));
        require(launch.parameters.size() <= kiln::most_parameter_bytes);
        if (launch.empty) return;
        for (const std::uint32_t blocks : launch.shape.grid) require(blocks > 0);
        require(launch.shape.grid[0] <= 0x7fffffff);
        require(launch.shape.grid[1] <= 0xffff && launch.shape.grid[2] <= 0xffff);
      };
      for (const kiln::Step& step : proposal.steps) check(step);
    }
  }
}

// Any sizes, dense or with any strides; what was set reads back.
inline void set_tensor(Input& in, kilnTensorDescriptor_t tensor) {
  const int rank = in.rank();
  const auto type = in.enumerator<kilnDataType_t>();
  const Input::Array dims = in.numbers(rank);
  const std::uint8_t how = in.byte();
  if (how % 2 == 0) {
    const auto format = in.enumerator<kilnTensorFormat_t>();
    if (!succeeded(kilnSetTensorNdDescriptorEx(tensor, format, type, rank, dims.data()))) return;
  } else {
    const Input::Array strides = in.numbers(rank);
    if (!succeeded(kilnSetTensorNdDescriptor(tensor, type, rank, dims.data(), strides.data()))) {
      return;
    }
  }
  int got_rank = 0;
  kilnDataType_t got_type{};
  Input::Array got{};
  require(succeeded(
      kilnGetTensorNdDescriptor(tensor, KILN_DIM_MAX, &got_type, &got_rank, got.data(), nullptr)));
  require(got_rank == rank && got_type == type);
  for (int i = 0; i < rank; ++i) require(got[i] == dims[i]);
}

inline void set_filter(Input& in, kilnFilterDescriptor_t filter) {
  const int rank = in.rank();
  const auto type = in.enumerator<kilnDataType_t>();
  const Input::Array dims = in.numbers();
  if (in.byte() % 2 == 0) {
    const auto format = in.enumerator<kilnTensorFormat_t>();
    succeeded(kilnSetFilterNdDescriptor(filter, type, format, rank, dims.data()));
  } else {
    const Input::Array strides = in.numbers();
    succeeded(kilnSetFilterNdDescriptorStrided(filter, type, rank, dims.data(), strides.data()));
  }
}

inline void set_convolution(Input& in, kilnConvolutionDescriptor_t convolution) {
  const int count = in.rank() - 2;
  const auto before = in.numbers(), after = in.numbers(), stride = in.numbers(),
             dilation = in.numbers();
  const bool same = in.byte() % 2 == 0;
  const auto mode = in.enumerator<kilnConvolutionMode_t>();
  const auto type = in.enumerator<kilnDataType_t>(2);
  succeeded(kilnSetConvolutionNdDescriptor(convolution, count, before.data(),
                                           same ? nullptr : after.data(), stride.data(),
                                           dilation.data(), mode, type));
}

}  // namespace fuzz
