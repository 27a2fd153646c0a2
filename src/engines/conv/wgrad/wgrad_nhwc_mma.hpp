// Filter gradient of channels-last tensors on the tensor cores, in copies of 16 bytes.
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

// Filters M x columns N (channels and taps) of dw. A warp's part is 8 thread_m x 4 thread_n.
struct WgradTile {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int fragments = 2;               // of 32 bytes of pixels, in a stage
  int stages = 4;                  // in shared memory
  int min_blocks = 1;              // of a multiprocessor at once

  int threads() const { return m / thread_m * (n / thread_n); }
  std::int64_t stage_pixels(DataType type) const;
  std::uint32_t shared_memory(DataType type) const;
};

// The tiles that a filter gradient may take on a device; empty if none fits into its shared memory.
std::vector<WgradTile> wgrad_nhwc_tiles(const ConvolutionProblem& problem,
                                        const DeviceDescription& device);

// The proposal of one tile in so many parts, whichever the engine would choose, of a problem that
// it does not refuse.
std::variant<Proposal, Refusal> propose_wgrad_nhwc(const ConvolutionProblem& problem,
                                                   const WgradTile& tile, int parts);

// "128x256, 8x16 a thread, 256 threads, 4 stages of 32 pixels"
std::string describe(const WgradTile& tile, const ConvolutionProblem& problem);

}  // namespace kiln
