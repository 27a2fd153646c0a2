// Depthwise forward propagation and data gradient of stride 1 of channels-last tensors of 16 bits,
// by long filters: products of Toeplitz matrices on the tensor cores.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Why a depthwise convolution, in any of its passes, is none for Toeplitz products, a clause; "" if
// it is one.
std::string toeplitz_refusal(const ConvolutionProblem& problem, const Gather& gather,
                             const DeviceDescription& device);

// 8 rows and 16 columns of pixels, of a block: so many of these.
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
