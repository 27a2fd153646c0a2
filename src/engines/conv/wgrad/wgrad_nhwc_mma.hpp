// Filter gradient of channels-last tensors on the tensor cores, with 16-byte copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

class WgradNhwcMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

// A tile of M filters x N columns (channels and taps) of dw. A warp computes 8 thread_m x 4
// thread_n of it.
struct WgradTile {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int fragments = 2;               // fragments (32 bytes of pixels) in a stage
  int stages = 4;                  // stages in shared memory
  int min_blocks = 1;              // resident blocks of a multiprocessor

  int threads() const { return m / thread_m * (n / thread_n); }
  std::int64_t stage_pixels(DataType type) const;
  std::uint32_t shared_memory(DataType type) const;
};

// The tiles that fit into the device's shared memory.
std::vector<WgradTile> wgrad_nhwc_tiles(const ConvolutionProblem& problem,
                                        const DeviceDescription& device);

// The proposal for one tile at a split count of `parts`, whether or not the engine would choose it.
// The problem must be one that the engine does not refuse.
std::variant<Proposal, Refusal> propose_wgrad_nhwc(const ConvolutionProblem& problem,
                                                   const WgradTile& tile, int parts);

// "128x256, 8x16 a thread, 256 threads, 4 stages of 32 pixels"
std::string describe(const WgradTile& tile, const ConvolutionProblem& problem);

}  // namespace kiln
