// Depthwise forward propagation and data gradient of stride 1 of channels-last tensors of 16 bits,
// by long filters: products of Toeplitz matrices on the tensor cores.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The reason, a clause, why a depthwise convolution (any pass) cannot be computed by Toeplitz
// products; "" if it can.
Refusal toeplitz_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device);

// A block's tile of pixels, in units of 8 rows and of 16 columns.
struct ToeplitzTile {
  std::int64_t rows, columns;
};

class ToeplitzNhwcMmaEngine final : public Engine {
 public:
  static std::span<const ToeplitzTile> tiles();

  const char* name() const override { return "toeplitz_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
